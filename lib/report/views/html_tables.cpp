// The record's tables: what NVIDIA_TF32_OVERRIDE does, what library versions changed, which precision requests got.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/override_sentences.hpp"
#include "report/views/html_sections.hpp"
#include "report/views/html_text.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxRows = 500;

std::string count_at(const json& object, const char* member) {
  const auto found = object.find(member);
  return found == object.end() ? "" : html_text(short_number(*found, ""));
}

std::string sentences(const json& table) {
  std::string text;
  for (const json& sentence : part_at(table, "sentences")) {
    text += "<p>" + html_text(sentence.is_string() ? sentence.get<std::string>() : "") + "</p>\n";
  }
  return text;
}

std::string limited_table(const std::vector<std::string>& head, std::vector<std::vector<std::string>> rows) {
  const std::size_t more = rows.size() - std::min(rows.size(), kMaxRows);
  rows.resize(rows.size() - more);
  return html_table(head, rows) +
         (more > 0 ? fmt::format("<p class=\"soft\">{} more rows are in the report.</p>\n", more) : "");
}

/// Decades of relative errors that the dots span.
struct Decades {
  double lowest = HUGE_VAL, highest = -HUGE_VAL;

  void add(double error) {
    if (error > 0 && std::isfinite(error)) {
      lowest = std::min(lowest, std::floor(std::log10(error)));
      highest = std::max(highest, std::ceil(std::log10(error)));
    }
  }
  [[nodiscard]] double place(double error) const {
    constexpr double kLeft = 8, kWidth = 224;
    const double share = error > 0 ? (std::log10(error) - lowest) / std::max(1.0, highest - lowest) : 0;
    return kLeft + kWidth * std::clamp(share, 0.0, 1.0);
  }
};

constexpr std::array<const char*, 3> kStates = {"unset", "0", "1"};

/// A dot for each state on a common logarithmic axis; no error is at its left end.
std::string dots(const json& states, const Decades& decades) {
  std::string circles;
  double left = HUGE_VAL, right = -HUGE_VAL;
  constexpr std::array<const char*, 3> kLooks = {"unset", "d0", "d1"};
  constexpr std::array<int, 3> kRadii = {3, 6, 4};
  for (const std::size_t i : {1, 0, 2}) {
    const json& state = part_at(states, kStates[i]);
    if (!state.empty() && state.contains("rel_l2")) {
      const double x = decades.place(number_value(state.at("rel_l2")));
      left = std::min(left, x);
      right = std::max(right, x);
      circles += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"8\" r=\"{}\"/>", kLooks[i], x, kRadii[i]);
    }
  }
  return fmt::format(
      "<svg class=\"dots\" viewBox=\"0 0 240 16\"><line x1=\"{:.1f}\" y1=\"8\" x2=\"{:.1f}\" y2=\"8\"/>{}</svg>", left,
      right, circles);
}

std::string state_text(const json& states, const char* name) {
  const json& state = part_at(states, name);
  if (state.empty()) {
    return "–";
  }
  std::string classes;
  for (const json& one : part_at(state, "observed")) {
    classes += " " + class_label(one.is_string() ? one.get<std::string>() : "");
  }
  return html_text(short_number(state.value("rel_l2", json()), ".1e") + classes);
}

std::string bits_text(const json& states, const char* name) {
  return html_text(text_at(part_at(states, name), "bits"));
}

}  // namespace

std::string override_section(const HtmlSource& source) {
  const json& effect = part_at(source.report, "override_effect");
  const json& rows = part_at(effect, "rows");
  if (rows.empty()) {
    return "";
  }
  Decades decades;
  for (const json& row : rows) {
    for (const json& state : part_at(row, "states")) {
      decades.add(number_value(state.value("rel_l2", json())));
    }
  }
  std::vector<std::vector<std::string>> table;
  for (const json& row : rows) {
    const json& states = part_at(row, "states");
    const bool predicted = row.is_object() && row.value("predicted", json()) == true;
    table.push_back({html_text(text_at(row, "op")), html_text(text_at(row, "mode")),
                     html_text(text_at(row, "backend") + (predicted ? ", predicted" : "")),
                     "<span class=\"id\">" + html_text(text_at(row, "shape")) + "</span>", dots(states, decades),
                     state_text(states, "unset"), state_text(states, "0"), state_text(states, "1"),
                     bits_text(states, "0"), bits_text(states, "1")});
  }
  const std::string axis = decades.lowest < decades.highest
                               ? fmt::format("relative error, 1e{:.0f} to 1e{:.0f}", decades.lowest, decades.highest)
                               : "relative error";
  return heading("override", "What NVIDIA_TF32_OVERRIDE changes") + sentences(effect) +
         "<p class=\"legend\"><span>● unset</span> <span style=\"color:var(--less)\">○ 0</span> "
         "<span style=\"color:var(--more)\">● 1</span></p>\n" +
         limited_table({"op", "mode", "backend", "shape", axis, ">unset", ">0", ">1", "bits with 0", "bits with 1"},
                       std::move(table));
}

std::string libraries_section(const HtmlSource& source) {
  const json& changes = part_at(source.report, "library_changes");
  const json& rows = part_at(changes, "rows");
  if (rows.empty()) {
    return "";
  }
  std::vector<std::vector<std::string>> table, changed;
  for (const json& row : rows) {
    table.push_back({html_text(text_at(row, "op")), html_text(text_at(row, "mode")), html_text(text_at(row, "backend")),
                     html_text(text_at(row, "base") + " → " + text_at(row, "other")), count_at(row, "cases"),
                     count_at(row, "identical"), count_at(row, "changed"), count_at(row, "not_comparable"),
                     count_at(row, "neither")});
    for (const json& change : part_at(row, "changes")) {
      const json& ratios = part_at(change, "error_over_limit");
      changed.push_back({"<span class=\"id\">" + html_text(text_at(change, "id")) + "</span>",
                         html_text(ratio_text(ratios.value("base", json()))),
                         html_text(ratio_text(ratios.value("other", json())))});
    }
  }
  std::string text = heading("libraries", "What each library version changed") + sentences(changes) +
                     limited_table({"op", "mode", "backend", "versions", ">cases", ">identical bits", ">changed",
                                    ">not comparable", ">in neither"},
                                   std::move(table));
  if (!changed.empty()) {
    text += "<h3>Cases whose bits changed</h3>\n" +
            limited_table({"case", ">error/limit before", ">after"}, std::move(changed));
  }
  return text;
}

std::string precision_section(const HtmlSource& source) {
  const json& map = part_at(source.report, "precision_map");
  std::vector<std::vector<std::string>> table;
  for (const json& row : map) {
    std::string request;
    for (const auto& [name, value] : part_at(row, "request").items()) {
      request += (request.empty() ? "" : ", ") + name + "=" + (value.is_string() ? value.get<std::string>() : "");
    }
    std::string layout;
    for (const auto& [name, value] : part_at(row, "layout").items()) {
      layout += value == true ? (layout.empty() ? "" : ", ") + name : "";
    }
    table.push_back({html_text(text_at(row, "op")), html_text(text_at(row, "mode")), html_text(request),
                     html_text(text_at(row, "backend")), html_text(layout),
                     html_text(class_label(text_at(row, "expected"))),
                     "<b>" + html_text(class_label(text_at(row, "class"))) + "</b>", html_text(text_at(row, "where")),
                     count_at(row, "cases"), html_text(text_at(row, "note"))});
  }
  return table.empty() ? ""
                       : heading("precision", "Which precision the requests got") +
                             limited_table({"op", "mode", "also set", "backend", "layout", "expected", "ran", "where",
                                            ">cases", ""},
                                           std::move(table));
}

}  // namespace numcheck::report::views
