// The parts of the console view about individual cases.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"
#include "report/criterion.hpp"
#include "report/failure_groups.hpp"
#include "report/number.hpp"
#include "report/override_sentences.hpp"
#include "report/views/console.hpp"
#include "report/views/console_format.hpp"
#include "report/views/console_output.hpp"
#include "report/views/judged.hpp"
#include "report/views/not_told.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

constexpr std::array kStages = {"inputs", "device", "reference", "yardsticks", "comparison"};
constexpr std::size_t kMaxShown = 10;  // reasons; the report has all of them
constexpr std::size_t kSlowest = 5;    // cases shown with metrics and stage times

/// "formats: a fp32 (99.6 % below bf16)  b fp32 holds bf16"; empty if the record has none.
std::string formats_line(const json& run) {
  std::string text;
  const json formats = run.value("formats", json::object());
  for (const auto& [port, format] : formats.items()) {
    const auto declared = format.at("declared").get<std::string>(), observed = format.at("observed").get<std::string>();
    const double below = number_value(format.at("below_bf16"));
    text += fmt::format("  {} {}{}", port, declared,
                        !observed.empty() && observed != declared ? " holds " + observed
                        : declared == "fp32" && below > 0         ? fmt::format(" ({:.3g} % below bf16)", 100 * below)
                                                                  : "");
  }
  return text.empty() ? "" : "        formats:" + text + "\n";
}

std::string metric_lines(const json& record) {
  std::string text;
  for (const json& run : record.at("runs")) {
    const std::string same = run.value("same_bits_as", "");
    text += fmt::format("        {}{}  {}{}{}\n", run.at("implementation").get<std::string>(),
                        run.at("deterministic").get<bool>() ? "" : "  NOT DETERMINISTIC",
                        human_time(number_value(run.at("device_s"))),
                        run.at("observed_class").get<std::string>().empty()
                            ? ""
                            : "  class " + class_label(run.at("observed_class").get<std::string>()),
                        same.empty() ? "" : "  same bits as " + same);
    if (const std::string words = not_told_text(run); !words.empty()) {
      text += fmt::format("        {}\n", words);
    }
    text += formats_line(run);
    for (const auto& [port, output] : run.at("outputs").items()) {
      const json& m = output.at("metrics");
      const std::string judged = judged_text(m);
      text += fmt::format("        {}: rel L2 {}  total {}  eff. bits {}  max ULP {}  e/B {}  z {}{}\n", port,
                          short_number(m.at("rel_l2"), ".2e"),
                          short_number(output.at("total_error").at("rel_l2"), ".2e"), bits_text(m.at("effective_bits")),
                          short_number(m.at("max_ulp"), ".3g"), short_number(m.at("max_over_bound"), ".3f"),
                          short_number(m.at("z_rms"), ".3f"), judged.empty() ? "" : "  " + judged);
      text += finding_lines(output.at("findings"), 10) + series_lines(output.at("findings"), 12);
    }
  }
  return text;
}

std::string stage_line(const json& times) {
  std::string text = "stages (sums over cases; they overlap):";
  for (const char* stage : kStages) {
    text += fmt::format("  {} {}", stage, human_time(number_value(times.at(stage))));
  }
  return text + "\n";
}

}  // namespace

std::string render_cases(const json& report, const ConsoleOptions& options) {
  if (options.verbosity < 1) {
    return "";
  }
  const json& cases = report.at("cases");
  const std::vector<std::string> names = digests_of(cases);
  constexpr std::size_t kStatusWidth = 14;
  std::string text;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string status = cases[i].at("status").get<std::string>();
    const Margins margins = margins_of(cases[i]);
    const std::string tail = fmt::format("  {:>8}  {:>8}   #{}", margin_text(margins.arithmetic, margins.without_ratio),
                                         margin_text(margins.rounding, margins.without_ratio), names[i]);
    const std::string id = cases[i].at("id").get<std::string>();
    const std::size_t room =
        options.width == 0
            ? display_width(id)
            : std::max<std::size_t>(24, options.width - std::min(options.width, kStatusWidth + tail.size()));
    const std::string shown = cut_middle(id, room);
    text += fmt::format("{}{:<{}}{}{}{}\n", paint(upper(status), status_colour(status), options.colour), "",
                        kStatusWidth - status.size(), shown,
                        std::string(room - std::min(room, display_width(shown)), ' '), tail);
    if (options.verbosity > 1) {
      text += metric_lines(cases[i]);
    }
  }
  if (options.verbosity > 1) {
    text += stage_line(report.at("time_s"));
  }
  return text;
}

std::string render_slowest(const json& report, const ConsoleOptions& options) {
  const json& cases = report.at("cases");
  std::vector<std::pair<double, const json*>> slowest;
  for (const json& record : cases) {
    double seconds = 0;
    for (const json& stage : record.at("time_s")) {
      seconds += number_value(stage);
    }
    slowest.emplace_back(seconds, &record);
  }
  const std::size_t wanted = options.slowest == 0 && options.verbosity > 1 ? kSlowest : options.slowest;
  const std::size_t shown = std::min(wanted, slowest.size());
  const auto last = slowest.begin() + static_cast<std::ptrdiff_t>(shown);
  std::ranges::partial_sort(slowest, last, std::greater(), &std::pair<double, const json*>::first);
  std::vector<std::vector<Cell>> rows;
  for (auto entry = slowest.begin(); entry != last; ++entry) {
    std::vector<Cell>& row = rows.emplace_back();
    row.push_back({human_time(entry->first)});
    for (const char* stage : kStages) {
      row.push_back({human_time(number_value(entry->second->at("time_s").at(stage)))});
    }
    row.push_back({entry->second->at("id").get<std::string>()});
  }
  if (rows.empty()) {
    return "";
  }
  std::vector<Column> columns = {{"time", true}};
  for (const char* stage : kStages) {
    columns.push_back({stage, true});
  }
  columns.push_back({"case", false, true});
  return paint(fmt::format("slowest {} (stages of different cases overlap)",
                           core::counted(static_cast<double>(rows.size()), "case")),
               Colour::bold, options.colour) +
         "\n" + render_table(columns, rows, options.width, options.colour);
}

std::string render_notes(const json& report, const ConsoleOptions& options) {
  std::vector<std::pair<std::string, std::size_t>> reasons;
  for (const json& record : report.at("cases")) {
    const std::string reason = record.at("reason").get<std::string>();
    const std::string status = record.at("status").get<std::string>();
    if (status == "pass" || status == "warn" || status == "xfail" || is_failure(record) || reason.empty()) {
      continue;
    }
    const std::string line = fmt::format("{}: {}", status, reason);
    const auto at = std::ranges::find(reasons, line, &std::pair<std::string, std::size_t>::first);
    if (at == reasons.end()) {
      reasons.emplace_back(line, 1);
    } else {
      ++at->second;
    }
  }
  std::string text = judged_sentence(report);
  text += text.empty() ? "" : "\n";
  text += options.verbosity > 0 ? not_told_lines(report) : "";
  for (std::size_t i = 0; i < std::min(kMaxShown, reasons.size()); ++i) {
    text += fmt::format("{:>5} {}\n", reasons[i].second, reasons[i].first);
  }
  if (reasons.size() > kMaxShown) {
    text += fmt::format("the report has {}\n",
                        core::counted(static_cast<double>(reasons.size() - kMaxShown), "more reason"));
  }
  return text;
}

}  // namespace numcheck::report::views
