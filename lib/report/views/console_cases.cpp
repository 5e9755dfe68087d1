// The parts of the console view about individual cases.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/override_sentences.hpp"
#include "report/report.hpp"
#include "report/views/console.hpp"
#include "report/views/console_format.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxShown = 10;  // failures and reasons; the report has all of them

std::string upper(std::string_view word) {
  std::string text(word);
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return text;
}

bool is_failure(const json& record) {
  static const std::set<std::string> failures = {"fail", "xpass", "error", "crashed", "timeout"};
  return failures.contains(record.at("status").get<std::string>());
}

std::vector<std::string> digests(const json& cases) {
  std::vector<std::string> all;
  for (const json& record : cases) {
    all.push_back(record.at("digest").get<std::string>());
  }
  return short_digests(all);
}

std::string position_text(const json& index) {
  return fmt::format("[{}]", fmt::join(index.get<std::vector<std::int64_t>>(), ","));
}

std::string value_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// "G2 spread 5.8 > 3".
std::string gate_text(const json& criterion) {
  return fmt::format("{} {} > {}", criterion.at("name").get<std::string>(),
                     short_number(criterion.at("measured"), ".4g"), short_number(criterion.at("limit"), ".4g"));
}

std::string worst_line(const json& worst) {
  return fmt::format("      worst at {}: got {} ({})  expected {}  {} ULP\n", position_text(worst.at("index")),
                     value_text(worst.at("got")), worst.at("got_bits").get<std::string>(),
                     value_text(worst.at("expected")), short_number(worst.at("ulps"), ".1f"));
}

/// The first failing gate with its source, the other failing ones by name, the error metrics and the worst element.
std::string output_lines(const std::string& port, const json& output) {
  std::vector<std::string> others;
  std::string text;
  for (const json& criterion : output.at("criteria")) {
    if (criterion.at("ok").get<bool>()) {
      continue;
    }
    if (text.empty()) {
      text = fmt::format("      {}: {}  ({})\n", port, gate_text(criterion), criterion.at("source").get<std::string>());
    } else {
      others.push_back(gate_text(criterion));
    }
  }
  if (text.empty()) {
    return text;
  }
  if (!others.empty()) {
    text += fmt::format("      also {}\n", fmt::join(others, ", "));
  }
  const json& metrics = output.at("metrics");
  std::vector<std::string> summary;
  if (metrics.at("rel_l2").is_number()) {  // otherwise infinite: zeros were expected, or nothing in particular
    summary.push_back(fmt::format("relative L2 {}, {} effective bits", short_number(metrics.at("rel_l2"), ".2e"),
                                  short_number(metrics.at("effective_bits"), ".1f")));
  }
  const auto mismatches = metrics.at("nonfinite_mismatch").get<std::uint64_t>();
  if (mismatches > 0) {
    summary.push_back(fmt::format("NaN or infinity wrong in {} of {} elements", mismatches,
                                  metrics.at("elements").get<std::uint64_t>()));
  }
  if (!summary.empty()) {
    text += fmt::format("      {}\n", fmt::join(summary, "; "));
  }
  for (const json& finding : output.at("findings")) {
    if (const auto words = finding.at("text").get<std::string>(); !words.empty()) {
      text += fmt::format("      {}: {}\n", finding.at("name").get<std::string>(), words);
    }
  }
  return output.at("worst").empty() ? text : text + worst_line(output.at("worst").front());
}

/// The first failing algorithm in full, and the number of others.
std::string run_lines(const json& runs) {
  const auto failed = [](const json& run) { return run.at("status") != "pass" && run.at("status") != "warn"; };
  const auto first = std::ranges::find_if(runs, failed);
  if (first == runs.end()) {
    return "";
  }
  std::string text;
  if (!(*first).at("implementation").get<std::string>().empty()) {
    text += "      " + (*first).at("implementation").get<std::string>();
    if (runs.size() > 1) {
      text += fmt::format("  ({} of {} algorithms fail)", std::ranges::count_if(runs, failed), runs.size());
    }
    text += "\n";
  }
  const std::string failing = (*first).at("failing").get<std::string>();
  std::string outputs;
  for (const auto& [port, output] : (*first).at("outputs").items()) {
    outputs += output_lines(port, output);
  }
  const std::string detail = (*first).at("guards").at("detail").get<std::string>();
  if (!detail.empty()) {
    outputs += "      guards: " + detail + "\n";
  }
  return text + (outputs.empty() && !failing.empty() ? "      " + failing + "\n" : outputs);
}

std::string failure_lines(const json& record, const std::string& digest, bool colour) {
  const std::string status = record.at("status").get<std::string>();
  const std::string runs = run_lines(record.at("runs"));
  std::string text = paint(upper(status), status_colour(status), colour) +
                     fmt::format("  {}   #{}\n", record.at("id").get<std::string>(), digest);
  const std::string reason = record.at("reason").get<std::string>();
  if (!reason.empty() && (runs.empty() || status != "fail")) {
    text += "      " + reason + "\n";
  }
  text += runs;
  if (record.contains("reproduce")) {
    text += "      run again: " + record.at("reproduce").get<std::string>() + "\n";
  }
  return text;
}

std::string metric_lines(const json& record) {
  std::string text;
  for (const json& run : record.at("runs")) {
    text += fmt::format("        {}{}  {}{}\n", run.at("implementation").get<std::string>(),
                        run.at("deterministic").get<bool>() ? "" : "  NOT DETERMINISTIC",
                        human_time(number_value(run.at("device_s"))),
                        run.at("observed_class").get<std::string>().empty()
                            ? ""
                            : "  class " + class_label(run.at("observed_class").get<std::string>()));
    for (const auto& [port, output] : run.at("outputs").items()) {
      const json& m = output.at("metrics");
      text +=
          fmt::format("        {}: rel L2 {}  total {}  eff. bits {}  max ULP {}  e/B {}  z {}\n", port,
                      short_number(m.at("rel_l2"), ".2e"), short_number(output.at("total_error").at("rel_l2"), ".2e"),
                      short_number(m.at("effective_bits"), ".1f"), short_number(m.at("max_ulp"), ".3g"),
                      short_number(m.at("max_over_bound"), ".3f"), short_number(m.at("z_rms"), ".3f"));
    }
  }
  return text;
}

std::string stage_line(const json& times) {
  std::string text = "stages (sums over cases; they overlap):";
  for (const char* stage : {"inputs", "device", "reference", "yardsticks", "comparison"}) {
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
  const std::vector<std::string> names = digests(cases);
  constexpr std::size_t kStatusWidth = 14;
  std::string text;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string status = cases[i].at("status").get<std::string>();
    const json& ratio = cases[i].at("error_over_limit");
    const std::string tail = fmt::format("{:>8}   #{}", ratio.is_null() ? "-" : ratio_text(ratio), names[i]);
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

std::string render_failures(const json& report, const ConsoleOptions& options) {
  const json& cases = report.at("cases");
  const std::vector<std::string> names = digests(cases);
  std::string text;
  std::size_t failures = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (is_failure(cases[i]) && ++failures <= kMaxShown) {
      text += failure_lines(cases[i], names[i], options.colour);
    }
  }
  if (failures > kMaxShown) {
    text += fmt::format("the report has {} more failures\n", failures - kMaxShown);
  }
  return text;
}

std::string render_notes(const json& report, const ConsoleOptions&) {
  std::vector<std::pair<std::string, std::size_t>> reasons;
  for (const json& record : report.at("cases")) {
    const std::string reason = record.at("reason").get<std::string>();
    if (record.at("status") == "pass" || is_failure(record) || reason.empty()) {
      continue;
    }
    const std::string line = record.at("status").get<std::string>() + ": " + reason;
    const auto at = std::ranges::find(reasons, line, &std::pair<std::string, std::size_t>::first);
    if (at == reasons.end()) {
      reasons.emplace_back(line, 1);
    } else {
      ++at->second;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(kMaxShown, reasons.size()); ++i) {
    text += fmt::format("{:>5} {}\n", reasons[i].second, reasons[i].first);
  }
  if (reasons.size() > kMaxShown) {
    text += fmt::format("the report has {} more reasons\n", reasons.size() - kMaxShown);
  }
  return text;
}

}  // namespace numcheck::report::views
