// Statistics over the steps of a case, as curves: columns of one unit share a panel.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/views/html_sections.hpp"
#include "report/views/html_text.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

constexpr double kPanelWidth = 640, kPanelHeight = 120;  // of a panel's curves, in units of the drawing

struct Curve {
  std::string name, doc;
  std::vector<double> values;
};

std::vector<double> values_of(const json& column) {
  std::vector<double> values;
  for (const json& value : part_at(column, "values")) {
    values.push_back(number_value(value));
  }
  return values;
}

/// From the smallest to the largest number; logarithmic if all are positive and they differ a hundredfold.
struct Axis {
  Axis(const std::string& unit, const std::vector<Curve>& curves) {
    constexpr double kMany = 100;
    for (const Curve& curve : curves) {
      for (const double value : curve.values) {
        if (std::isfinite(value)) {
          low = any ? std::min(low, value) : value;
          high = any ? std::max(high, value) : value;
          any = true;
        }
      }
    }
    logarithmic = low > 0 && high / low > kMany && unit != "dB";  // which are logarithms
  }
  /// 0 at the bottom, 1 at the top.
  [[nodiscard]] double place(double value) const {
    if (high == low) {
      return 0.5;
    }
    return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }

  double low = 0, high = 0;
  bool any = false, logarithmic = false;
};

/// The curve's points; it is interrupted where there is no number.
std::string path_of(const std::vector<double>& steps, const std::vector<double>& values, const Axis& axis) {
  std::string path;
  bool draws = false;
  const double first = steps.front(), length = std::max(steps.back() - first, 1.0);
  for (std::size_t i = 0; i < std::min(steps.size(), values.size()); ++i) {
    if (!std::isfinite(values[i])) {
      draws = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", draws ? "L" : "M", (steps[i] - first) / length * kPanelWidth,
                        kPanelHeight * (1 - axis.place(values[i])));
    if (!draws) {
      path += "h.1";  // a number between two gaps is a dot
    }
    draws = true;
  }
  return path;
}

std::string panel(const std::string& unit, const std::vector<double>& steps, const std::vector<Curve>& curves) {
  const Axis axis(unit, curves);
  if (!axis.any || steps.empty() || !std::isfinite(steps.front()) || !std::isfinite(steps.back())) {
    return "";
  }
  std::string paths;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const bool is_dashed = i % 2 == 1;
    paths += fmt::format("<path class=\"curve{}\" d=\"{}\"/>", is_dashed ? " dashed" : "",
                         path_of(steps, curves[i].values, axis));
    names.push_back(
        fmt::format("{}{}: {}", html_text(curves[i].name), is_dashed ? " (dashed)" : "", html_text(curves[i].doc)));
  }
  return fmt::format(
      "<figure class=\"series\"><figcaption>{}<span>{:.6g} to {:.6g}{}; steps {:g} to {:g}</span></figcaption>"
      "<svg viewBox=\"-4 -4 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg><p class=\"soft small\">{}</p></figure>\n",
      html_text(unit), axis.low, axis.high, axis.logarithmic ? ", logarithmic" : "", steps.front(), steps.back(),
      kPanelWidth + 8, kPanelHeight + 8, html_text(unit), paths, fmt::join(names, "<br>"));
}

std::string panels(const json& series) {
  if (!series.is_array() || series.empty()) {
    return "";
  }
  const std::vector<double> steps = values_of(series.front());
  std::vector<std::string> units;  // in the order of the columns
  std::map<std::string, std::vector<Curve>> curves;
  for (const json& column : series) {
    const std::string unit = text_at(column, "unit");
    if (unit.empty()) {
      continue;
    }
    if (!curves.contains(unit)) {
      units.push_back(unit);
    }
    curves[unit].push_back({text_at(column, "name"), text_at(column, "doc"), values_of(column)});
  }
  std::string text;
  for (const std::string& unit : units) {
    text += panel(unit, steps, curves[unit]);
  }
  return text;
}

/// Runs that have the same series, as several algorithms and backends may, show it once.
std::string block_of(const json& record, const std::string& digest) {
  std::string text;
  std::set<std::string> shown;
  for (const json& run : part_at(record, "runs")) {
    for (const auto& [port, output] : part_at(run, "outputs").items()) {
      for (const json& finding : part_at(output, "findings")) {
        const json& series = part_at(finding, "series");
        if (const std::string curves = panels(series); !curves.empty() && shown.insert(series.dump()).second) {
          text += fmt::format("<p class=\"facts\">{}: {}</p>\n{}", html_text(text_at(finding, "name")),
                              html_text(text_at(finding, "text")), curves);
        }
      }
    }
  }
  const std::string name = is_notable(text_at(record, "status"))  // has details to go to
                               ? fmt::format("<a href=\"#{}\">#{}</a>", case_anchor(digest), digest)
                               : "#" + digest;
  return text.empty() ? text
                      : fmt::format("<h3 class=\"id\">{} {}</h3>\n{}", html_text(text_at(record, "id")), name, text);
}

}  // namespace

std::string series_section(const HtmlSource& source) {
  constexpr std::size_t kMost = 24;
  std::string text;
  std::size_t shown = 0, left = 0;
  for (std::size_t i = 0; i < source.cases.size(); ++i) {
    const std::string block = shown < kMost ? block_of(source.cases[i], source.digests[i]) : "";
    shown += block.empty() ? 0 : 1;
    left += shown == kMost && block.empty() && !block_of(source.cases[i], source.digests[i]).empty() ? 1 : 0;
    text += block;
  }
  if (text.empty()) {
    return "";
  }
  return heading("series", "Step by step") +
         "<p class=\"soft\">Of each step, the tensor whose scale is farthest off in it.</p>\n" + text +
         (left > 0 ? fmt::format("<p class=\"soft\">These are the first {} cases with steps; the report has all.</p>\n",
                                 kMost)
                   : "");
}

}  // namespace numcheck::report::views
