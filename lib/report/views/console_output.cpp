#include "report/views/console_output.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"
#include "core/strings.hpp"
#include "report/criterion.hpp"
#include "report/number.hpp"
#include "report/views/judged.hpp"
#include "report/views/text_table.hpp"
#include "report/views/wrong_sentence.hpp"
#include "tolerance/criterion_words.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;
using tolerance::Criterion;

std::string position_text(const json& index) {
  return fmt::format("[{}]", fmt::join(index.get<std::vector<std::int64_t>>(), ","));
}

std::string value_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// A distance in ulps means nothing for a NaN, nor where a result near zero is expected, which has tiny ulps.
std::string distance_text(const json& worst) {
  constexpr double kMany = 1e6, kTooMany = 1e9;
  const double ulps = number_value(worst.at("ulps"));
  if (ulps < kTooMany) {
    return fmt::format(fmt::runtime(ulps < kMany ? "  {:.1f} ULP" : "  {:.2e} ULP"), ulps);
  }
  const double error = std::fabs(number_value(worst.at("got")) - number_value(worst.at("expected")));
  return std::isfinite(error) ? fmt::format("  off by {:.3g}", error) : std::string();
}

std::string worst_line(const json& worst) {
  return fmt::format("      worst at {}: got {} ({})  expected {}{}\n", position_text(worst.at("index")),
                     value_text(worst.at("got")), worst.at("got_bits").get<std::string>(),
                     value_text(worst.at("expected")), distance_text(worst));
}

/// Gates whose limits have one source share a line.
struct GateLine {
  std::string source;
  std::vector<std::string> gates;
};

/// The failed gates in order; the first of each source names it.
std::string gate_lines(const std::string& port, const json& output) {
  std::vector<GateLine> lines;
  for (const json& written : output.at("criteria")) {
    const Criterion criterion = criterion_of(written);
    if (criterion.ok) {
      continue;
    }
    // Words about conduct are the source.
    const std::string source = tolerance::is_conduct(criterion.about) ? "" : criterion.source;
    if (lines.empty() || source.empty() || lines.back().source != source) {
      lines.push_back({source, {}});
    }
    lines.back().gates.push_back(tolerance::words_of(criterion));
  }
  std::string text;
  for (const GateLine& line : lines) {
    text += fmt::format("      {}{}{}\n", text.empty() ? port + ": " : "also ", fmt::join(line.gates, ", "),
                        line.source.empty() ? "" : "  (" + line.source + ")");
  }
  return text;
}

/// The norms of the elements that are finite on both sides, and how many are not.
std::string error_line(const json& metrics) {
  const auto elements = metrics.at("elements").get<double>(), compared = metrics.at("finite").get<double>();
  const auto mismatches = metrics.at("nonfinite_mismatch").get<double>();
  const std::string where =
      compared == elements ? "" : fmt::format(" in {}", core::counted(compared, "finite element"));
  std::string text;
  if (compared > 0 && number_value(metrics.at("rel_l2")) == 0) {
    text = "no error" + where;
  } else if (compared > 0 && metrics.at("rel_l2").is_number()) {  // otherwise zeros were expected, or nothing
    text = fmt::format("relative L2 {}, {} effective bits{}", short_number(metrics.at("rel_l2"), ".2e"),
                       bits_text(metrics.at("effective_bits")), where);
  }
  if (mismatches > 0) {
    text = fmt::format("NaN or infinity in the wrong place in {:.0f} of {}{}{}", mismatches,
                       core::counted(elements, "element"), text.empty() ? "" : "; ", text);
  }
  if (const std::string judged = judged_text(metrics); !judged.empty()) {
    text += (text.empty() ? "" : "; ") + judged;
  }
  return text.empty() ? text : fmt::format("      {}\n", text);
}

/// For each row, how far its numbers are from the medians of their columns, in units of what these cover: the most of all
/// columns that are plotted.
std::vector<double> strangeness(const json& series, std::size_t rows) {
  std::vector<double> most(rows, 0.0);
  for (const json& column : series) {
    std::vector<double> values, finite;
    for (const json& value : column.at("values")) {
      values.push_back(number_value(value));
    }
    std::ranges::copy_if(values, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
    if (finite.empty() || column.at("unit").get<std::string>().empty()) {
      continue;
    }
    std::ranges::sort(finite);
    const double median = finite[finite.size() / 2], range = finite.back() - finite.front();
    for (std::size_t row = 0; range > 0 && row < std::min(rows, values.size()); ++row) {
      most[row] = std::isfinite(values[row]) ? std::max(most[row], std::fabs(values[row] - median) / range) : most[row];
    }
  }
  return most;
}

/// At most 12 rows: of as many equal parts, the strangest row of each.
std::vector<std::size_t> telling_rows(const json& series, std::size_t rows) {
  constexpr std::size_t kMost = 12;
  const std::vector<double> strange = strangeness(series, rows);
  std::vector<std::size_t> shown(std::min(rows, kMost));
  for (std::size_t part = 0; part < shown.size(); ++part) {
    const auto first = strange.begin() + static_cast<std::ptrdiff_t>(part * rows / shown.size());
    const auto last = strange.begin() + static_cast<std::ptrdiff_t>((part + 1) * rows / shown.size());
    shown[part] = static_cast<std::size_t>(std::max_element(first, last) - strange.begin());
  }
  return shown;
}

}  // namespace

std::string bits_text(const json& bits) {
  const double value = number_value(bits);
  if (std::isnan(value)) {
    return "–";
  }
  return std::isinf(value) && value > 0 ? "exact" : fmt::format("{:.1f}", std::fmax(value, 0.0));
}

std::string finding_lines(const json& findings, std::size_t indent) {
  std::string text;
  for (const json& finding : findings) {
    const auto name = finding.at("name").get<std::string>(), words = finding.at("text").get<std::string>();
    // The text of a cause says how much it explains, and that is what was measured.
    const bool has_value = !finding.contains("cause");
    text += fmt::format("{:{}}{}{}{}\n", "", indent, name,
                        has_value ? " " + short_number(finding.at("measured"), ".3g") : std::string(),
                        words.empty() ? words : ": " + words);
  }
  return text;
}

std::string series_lines(const json& findings, std::size_t indent) {
  std::string text;
  for (const json& finding : findings) {
    const json series = finding.value("series", json::array());
    const std::size_t steps = series.empty() ? 0 : series.front().at("values").size();
    if (steps == 0) {
      continue;
    }
    const std::vector<std::size_t> shown = telling_rows(series, steps);
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows(shown.size());
    for (const json& column : series) {
      columns.push_back({column.at("name").get<std::string>(), true});
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const double value = number_value(column.at("values").at(shown[i]));
        rows[i].push_back({std::isnan(value) ? "–" : fmt::format("{:.6g}", value)});
      }
    }
    for (const std::string& line : core::split(render_table(columns, rows, 0, false), '\n')) {
      text += line.empty() ? line : std::string(indent, ' ') + line + "\n";
    }
    if (rows.size() < steps) {
      text += fmt::format("{:{}}({} of {} steps: of each {} or so, the one that is least like the others)\n", "",
                          indent, rows.size(), steps, (steps + rows.size() / 2) / rows.size());
    }
  }
  return text;
}

std::string output_lines(const std::string& port, const json& output) {
  std::string text = gate_lines(port, output);
  const std::string declared = output.value("declared", std::string());
  if (text.empty() && declared.empty()) {
    return text;
  }
  if (text.empty()) {
    text = fmt::format("      {}: {}\n", port, declared);
  }
  if (const auto wrong = output.find("wrong"); wrong != output.end()) {
    text += fmt::format("      {}{}\n", wrong_sentence(*wrong),
                        output.at("sampled").get<bool>() ? " (only a sample was compared)" : "");
  }
  text += error_line(output.at("metrics")) + finding_lines(output.at("findings"), 6);
  return output.at("worst").empty() ? text : text + worst_line(output.at("worst").front());
}

}  // namespace numcheck::report::views
