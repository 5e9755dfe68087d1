// About the run itself: times, slowest cases, machine, libraries, variables, notes.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/views/html_sections.hpp"
#include "report/views/html_text.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

std::string stages_table(const json& times) {
  constexpr std::array kStages = {"wall", "inputs", "reference", "yardsticks", "device", "comparison"};
  std::vector<std::vector<std::string>> rows;
  for (const char* stage : kStages) {
    if (times.contains(stage)) {
      rows.push_back({stage, seconds_text(number_value(times.at(stage)))});
    }
  }
  return rows.empty() ? ""
                      : "<div><h3>Time by stage</h3>\n" + html_table({"stage", ">time"}, rows) +
                            "<p class=\"soft small\">sums over cases; stages overlap, wall is what passed</p></div>\n";
}

std::string slowest_table(const HtmlSource& source) {
  constexpr std::size_t kShown = 8;
  std::vector<const CaseFacts*> order;
  for (const CaseFacts& facts : source.facts) {
    if (facts.seconds > 0) {
      order.push_back(&facts);
    }
  }
  const auto shown = static_cast<std::ptrdiff_t>(std::min(kShown, order.size()));
  std::partial_sort(order.begin(), order.begin() + shown, order.end(),
                    [](const CaseFacts* left, const CaseFacts* right) { return left->seconds > right->seconds; });
  std::vector<std::vector<std::string>> rows;
  for (auto one = order.begin(); one != order.begin() + shown; ++one) {
    rows.push_back({seconds_text((*one)->seconds), "<span class=\"id\">" + html_text((*one)->id) + "</span>"});
  }
  return rows.empty() ? "" : "<div><h3>Slowest cases</h3>\n" + html_table({">time", "case"}, rows) + "</div>\n";
}

/// A member of any type as text.
std::string value_text(const json& value) {
  return html_text(value.is_string() ? value.get<std::string>() : value.is_null() ? "unset" : value.dump());
}

std::string pairs_table(std::string_view title, const json& object, const std::vector<std::string>& head) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_structured()) {
      rows.push_back({html_text(name), value.is_null() ? "<span class=\"soft\">unset</span>" : value_text(value)});
    }
  }
  return rows.empty() ? "" : fmt::format("<div><h3>{}</h3>\n{}</div>\n", title, html_table(head, rows));
}

}  // namespace

std::string times_section(const HtmlSource& source) {
  const std::string tables = stages_table(part_at(source.report, "time_s")) + slowest_table(source);
  return tables.empty() ? "" : heading("times", "Where the time went") + "<div class=\"two\">\n" + tables + "</div>\n";
}

std::string machine_section(const HtmlSource& source) {
  const json& report = source.report;
  const json& machine = part_at(report, "machine");
  std::string notes;
  for (const json& note : part_at(report, "notes")) {
    notes += "<p>" + value_text(note) + "</p>\n";
  }
  std::string command;
  for (const json& word : part_at(part_at(report, "tool"), "argv")) {
    command += " " + (word.is_string() ? word.get<std::string>() : "");
  }
  std::string text = heading("machine", "Machine and settings");
  text += notes.empty() ? "" : "<h3>Notes</h3>\n" + notes;
  text += command.empty() ? "" : "<pre>te-numcheck" + html_text(command) + "</pre>\n";
  return text + "<div class=\"two\">\n" + pairs_table("Device", part_at(machine, "device"), {"", ""}) +
         pairs_table("Libraries", part_at(machine, "libraries"), {"library", "version"}) +
         pairs_table("Host", part_at(machine, "host"), {"", ""}) +
         pairs_table("Plan", part_at(report, "plan"), {"", ""}) +
         pairs_table("Variables that can change numbers", part_at(report, "environment"), {"variable", "value"}) +
         "</div>\n";
}

}  // namespace numcheck::report::views
