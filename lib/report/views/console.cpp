#include "report/views/console.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"
#include "core/printable.hpp"
#include "report/case_facts.hpp"
#include "report/contract.hpp"
#include "report/criterion.hpp"
#include "report/number.hpp"
#include "report/override_sentences.hpp"
#include "report/printable_report.hpp"
#include "report/summary.hpp"
#include "report/views/console_format.hpp"
#include "report/views/console_output.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

std::string device_text(const json& machine) {
  const json& device = machine.at("device");
  if (device.is_null()) {
    return "no device";
  }
  std::string text = device.at("simulated").get<bool>()
                         ? fmt::format("simulated sm_{}", device.at("sm").get<int>())
                         : fmt::format("{} · sm_{}", device.at("name").get<std::string>(), device.at("sm").get<int>());
  if (machine.at("driver").is_string()) {
    text += " · driver " + machine.at("driver").get<std::string>();
  }
  for (const auto& [name, version] : machine.at("libraries").items()) {
    text += " · " + name + " " + version.get<std::string>();
  }
  return text;
}

std::string simulated_notice(const json& report) {
  const json& device = report.at("machine").at("device");
  if (device.is_null() || !device.at("simulated").get<bool>()) {
    return "";
  }
  return notice_of_simulated(device.at("sm").get<int>());
}

std::string set_variables(const json& environment) {
  std::string text;
  for (const auto& [name, value] : environment.items()) {
    if (value.is_string()) {
      text += (text.empty() ? "" : " ") + name + "=" + value.get<std::string>();
    }
  }
  return text;
}

std::string counted(std::size_t number, std::string_view noun) {
  return core::counted(static_cast<double>(number), noun);
}

std::string plan_line(const json& report) {
  const json& plan = report.at("plan");
  const auto selected = plan.at("selected").get<std::size_t>();
  const auto expanded = plan.at("expanded").get<std::size_t>();
  std::string line = fmt::format("{}    {}", plan.at("name").get<std::string>(), counted(selected, "case"));
  if (selected != expanded) {
    line += fmt::format(" of {}", expanded);
  }
  const json& shard = plan.at("shard");
  if (shard.at("count").get<std::size_t>() > 1) {
    line +=
        fmt::format(" (shard {}/{})", shard.at("index").get<std::size_t>() + 1, shard.at("count").get<std::size_t>());
  }
  line += fmt::format("    seed {}", plan.at("seed").get<std::uint64_t>());
  for (const std::string& caveat : caveats_of(report)) {
    line += "    " + caveat;
  }
  return line;
}

struct Tally {
  std::size_t pass = 0;
  std::size_t warn = 0;
  std::size_t fail = 0;
  std::size_t other = 0;
  std::optional<double> worst, rounding;
  std::string without_ratio;  ///< the gate that made `worst` infinite
  std::string at;
};

void count(Tally& tally, const json& record) {
  const std::string status = record.at("status").get<std::string>();
  ++(status == "pass" ? tally.pass : status == "warn" ? tally.warn : status == "fail" ? tally.fail : tally.other);
  const Margins margins = margins_of(record);
  if (margins.rounding.has_value()) {
    tally.rounding = std::max(*margins.rounding, tally.rounding.value_or(0));
  }
  if (margins.arithmetic.has_value() && (!tally.worst.has_value() || *margins.arithmetic > *tally.worst)) {
    tally.worst = margins.arithmetic;
    tally.without_ratio = margins.without_ratio;
    tally.at = parameters_of(record.at("id").get<std::string>());
  }
}

Cell count_cell(std::size_t number, Colour colour) {
  return {std::to_string(number), number == 0 ? Colour::dim : colour};
}

std::vector<Cell> state_cells(const json& row, const std::string& state, bool first) {
  const json& facts = row.at("states").at(state);
  const std::string bits = facts.at("bits").is_null()        ? ""
                           : facts.at("bits") == "identical" ? "same bits"
                                                             : "bits differ";
  std::vector<std::string> classes;
  for (const json& name : facts.at("observed")) {
    classes.push_back(class_label(name.get<std::string>()));
  }
  const auto once = [&](const char* key) { return first ? row.at(key).get<std::string>() : std::string(); };
  return {{once("op")},
          {once("mode")},
          {once("shape")},
          {state},
          {classes.empty() ? "-" : fmt::format("{}", fmt::join(classes, "+"))},
          {short_number(facts.at("rel_l2"), ".2e")},
          {bits_text(facts.at("effective_bits"))},
          {bits, bits == "bits differ" ? Colour::yellow : Colour::none},
          {human_time(number_value(facts.at("device_s")))}};
}

/// A table of the rows under a title; empty if there are none.
std::string override_rows(const char* title, const std::vector<const json*>& all, const ConsoleOptions& options) {
  constexpr std::size_t kRowsShown = 12;
  const std::size_t shown = options.verbosity > 0 ? all.size() : std::min(kRowsShown, all.size());
  if (all.empty()) {
    return "";
  }
  std::vector<std::vector<Cell>> rows;
  for (const json* row : std::span(all).first(shown)) {
    bool first = true;
    for (const std::string state : {"unset", "0", "1"}) {
      if (row->at("states").contains(state)) {
        rows.push_back(state_cells(*row, state, first));
        first = false;
      }
    }
  }
  std::string text = paint(title, Colour::bold, options.colour) + "\n";
  text += render_table({{"op"},
                        {"mode"},
                        {"shape", false, true},
                        {"override"},
                        {"class"},
                        {"rel L2", true},
                        {"eff. bits", true},
                        {"against base"},
                        {"time", true}},
                       rows, options.width, options.colour);
  if (shown < all.size()) {
    text += fmt::format("({}: use -v or see report.json)\n", counted(all.size() - shown, "more row"));
  }
  return text;
}

std::string render_configurations(const json& report) {
  if (!report.contains("configurations")) {
    return "";
  }
  const json& c = report.at("configurations");
  return fmt::format("{} of {} verified that were offered for {}, by {}\n", c.at("verified").get<std::size_t>(),
                     counted(c.at("offered").get<std::size_t>(), "kernel configuration"),
                     counted(c.at("asked").get<std::size_t>(), "shape"),
                     counted(c.at("kept").get<std::size_t>(), "case"));
}

}  // namespace

std::string render_header(const json& report, const ConsoleOptions& options) {
  const json& tool = report.at("tool");
  std::string text = fmt::format("te-numcheck {} ({}{})    {}\n", tool.at("version").get<std::string>(),
                                 tool.at("revision").get<std::string>(),
                                 tool.at("dirty").get<bool>() ? ", changed" : "", device_text(report.at("machine")));
  const std::string simulated = simulated_notice(report);
  if (!simulated.empty()) {
    text += paint("*** " + simulated + " ***", Colour::alarm, options.colour) + "\n";
  }
  text += plan_line(report) + "\n";
  const std::string variables = set_variables(report.at("environment"));
  if (!variables.empty()) {
    text += "environment    " + paint(variables, Colour::yellow, options.colour) + "\n";
  }
  return text;
}

std::string render_groups(const json& report, const ConsoleOptions& options) {
  using Key = std::tuple<std::string, std::string, std::string>;
  std::vector<Key> order;
  std::map<Key, Tally> tallies;
  for (const json& record : report.at("cases")) {
    const Key key{record.at("op"), record.at("mode"), record.at("backend")};
    if (tallies.try_emplace(key).second) {
      order.push_back(key);
    }
    count(tallies[key], record);
  }
  std::vector<std::vector<Cell>> rows;
  for (const Key& key : order) {
    const auto& [op, mode, backend] = key;
    const Tally& tally = tallies[key];
    const bool over = tally.worst.has_value() && *tally.worst > 1;
    rows.push_back({{op},
                    {mode},
                    {backend},
                    count_cell(tally.pass, Colour::green),
                    count_cell(tally.warn, Colour::yellow),
                    count_cell(tally.fail, Colour::red),
                    count_cell(tally.other, Colour::yellow),
                    {margin_text(tally.worst, tally.without_ratio), over ? Colour::red : Colour::none},
                    {margin_text(tally.rounding, tally.without_ratio)},
                    {tally.at}});
  }
  if (rows.empty()) {
    return "";
  }
  return render_table({{"op"},
                       {"mode"},
                       {"backend"},
                       {"pass", true},
                       {"warn", true},
                       {"fail", true},
                       {"other", true},
                       {"worst error/limit", true},
                       {"rounding", true},
                       {"at", false, true}},
                      rows, options.width, options.colour);
}

std::string render_override(const json& report, const ConsoleOptions& options) {
  if (!report.contains("override_effect")) {
    return "";
  }
  const json& effect = report.at("override_effect");
  std::vector<const json*> measured;
  std::vector<const json*> predicted;
  for (const json& row : effect.at("rows")) {
    (row.value("predicted", false) ? predicted : measured).push_back(&row);
  }
  std::string text = override_rows("NVIDIA_TF32_OVERRIDE", measured, options);
  text += override_rows("NVIDIA_TF32_OVERRIDE, as predicted by modelled arithmetic: no hardware evidence", predicted,
                        options);
  for (const json& sentence : effect.at("sentences")) {
    text += "  " + sentence.get<std::string>() + "\n";
  }
  return text;
}

std::string render_summary(const json& report, const ConsoleOptions& options) {
  const json& summary = report.at("summary");
  std::vector<std::string> counts;
  for (const verdict::Status status : verdict::all_statuses()) {
    const auto number_of = summary.at(verdict::status_name(status)).get<std::size_t>();
    if (number_of > 0) {
      const std::string part = fmt::format("{} {}", number_of, verdict::status_name(status));
      counts.push_back(paint(part, status_colour(verdict::status_name(status)), options.colour));
    }
  }
  std::string line =
      fmt::format("{}{}{}    {}", counted(summary.at("cases").get<std::size_t>(), "case"), counts.empty() ? "" : ": ",
                  fmt::join(counts, ", "), human_time(number_value(report.at("time_s").at("wall"))));
  if (report.at("interrupted").get<bool>()) {
    line += "    " + paint("INTERRUPTED", Colour::alarm, options.colour);
  }
  if (breaks_contract(report)) {
    line += "    " + paint("CONTRACT BROKEN", Colour::alarm, options.colour);
  }
  const std::string simulated = simulated_notice(report);
  if (!simulated.empty()) {
    line += "    " + paint(simulated, Colour::alarm, options.colour);
  }
  if (!options.report_path.empty()) {
    line += "    report: " + core::printable(options.report_path);
  }
  return line + "\n";
}

std::string render_console(const json& raw, const ConsoleOptions& options) {
  const PrintableReport printable(raw);
  const json& report = printable.get();
  if (options.verbosity < 0) {
    return render_summary(report, options);
  }
  std::string text = render_header(report, options);
  if (report.value("brief", false)) {
    for (const std::string& part : {render_known_issues(report, options), render_contract(report, options)}) {
      text += part.empty() ? "" : "\n" + part;
    }
    return text + "\n" + render_summary(report, options);
  }
  for (const auto& part :
       {render_cases(report, options), render_groups(report, options), render_override(report, options),
        render_precision(report, options), render_libraries(report, options), render_warnings(report, options),
        render_failures(report, options), render_causes(report, options), render_known_issues(report, options),
        render_configurations(report), render_contract(report, options), render_tolerances(report, options),
        render_unseen_fault(report, options), render_notes(report, options), render_baseline(report, options),
        render_slowest(report, options), render_summary(report, options)}) {
    if (!part.empty()) {
      text += "\n";
      text += part;
    }
  }
  return text;
}

}  // namespace numcheck::report::views
