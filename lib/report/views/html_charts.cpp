// Charts: error/limit against the length of sums, and how errors are distributed. Their configurations are JSON, which the
// page's script hands to Chart.js; the numbers of each stand in a table beside it.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/strings.hpp"
#include "report/number.hpp"
#include "report/views/html_sections.hpp"
#include "report/views/html_text.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// A chart's figure: the canvas, which the script shows once something is drawn on it, and the numbers.
std::string figure(std::string_view id, std::string_view title, std::string_view note, const std::string& table) {
  return fmt::format(
      "<figure class=\"chart\" id=\"{}\"><figcaption>{}<span>{}</span></figcaption><div class=\"plot\"><canvas "
      "role=\"img\" aria-label=\"{}\"></canvas></div><details class=\"numbers\" open><summary>Numbers</summary>{}"
      "</details></figure>\n",
      id, title, note, title, table);
}

/// The parameter of an identifier that a sum is as long as: k of products, keys of attention and softmax, a row of norms,
/// the rows that a bias gradient adds.
std::optional<double> sum_length(const CaseFacts& facts) {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"gemm", "k"},         {"attention_fwd", "sk"}, {"attention_bwd", "sk"}, {"softmax_fwd", "sk"},
      {"softmax_bwd", "sk"}, {"layernorm_fwd", "h"},  {"layernorm_bwd", "h"},  {"rmsnorm_fwd", "h"},
      {"rmsnorm_bwd", "h"},  {"bias_grad", "r"}};
  const auto name = names.find(facts.op);
  const std::vector<std::string> parts = core::split(facts.id, '/');
  if (name == names.end() || parts.size() < 2) {
    return std::nullopt;
  }
  for (const std::string& parameter : core::split(parts[1], ',')) {
    if (parameter.starts_with(name->second + "=")) {
      const double value = std::strtod(parameter.c_str() + name->second.size() + 1, nullptr);
      return value > 0 ? std::optional(value) : std::nullopt;
    }
  }
  return std::nullopt;
}

/// Largest error/limit by series and length.
using Curves = std::map<std::string, std::map<double, double>>;

struct Charts {
  json configurations = json::array();
  std::string figures;

  void add_curves(std::string_view id, std::string_view title, std::string_view note, const Curves& curves) {
    if (curves.empty()) {
      return;
    }
    json series = json::array();
    std::vector<std::string> head = {"length"};
    std::map<double, std::vector<std::string>> rows;
    for (const auto& [name, points] : curves) {
      head.push_back(">" + html_text(name));
      json values = json::array();
      for (const auto& [length, ratio] : points) {
        rows[length].resize(curves.size());
        rows[length][head.size() - 2] = std::isinf(ratio) ? "∞" : html_text(ratio_text(number(ratio)));
        if (std::isfinite(ratio) && ratio > 0) {  // the axis is logarithmic
          values.push_back({length, ratio});
        }
      }
      series.push_back({{"name", name}, {"points", std::move(values)}});
    }
    std::vector<std::vector<std::string>> table;
    for (auto& [length, cells] : rows) {
      cells.insert(cells.begin(), fmt::format("{:g}", length));
      cells.resize(head.size());
      table.push_back(cells);
    }
    configurations.push_back({{"id", id},
                              {"kind", "curves"},
                              {"x", "length of the sum"},
                              {"y", "error / limit"},
                              {"limit", 1},
                              {"series", std::move(series)}});
    figures += figure(id, title, note, html_table(head, table));
  }

  void add_shares(std::string_view id, std::string_view title, std::string_view note,
                  const std::vector<std::string>& bins, std::map<std::string, std::vector<double>> counts,
                  const std::vector<double>& reference, std::string_view reference_name) {
    if (counts.empty()) {
      return;
    }
    std::vector<std::string> head = {""};
    std::vector<std::vector<std::string>> rows;
    for (const std::string& bin : bins) {
      rows.push_back({html_text(bin)});
    }
    json series = json::array();
    const auto add = [&](std::string_view name, std::vector<double> values, bool dashed) {
      double sum = 0;
      for (const double value : values) {
        sum += value;
      }
      head.push_back(">" + html_text(name));
      for (std::size_t i = 0; i < bins.size(); ++i) {
        values[i] = sum > 0 ? values[i] / sum : 0;
        rows[i].push_back(values[i] == 0 ? "0" : fmt::format("{:.3g} %", 100 * values[i]));
      }
      values.resize(bins.size());
      series.push_back({{"name", name}, {"shares", values}, {"reference", dashed}});
    };
    for (auto& [name, values] : counts) {
      add(name, values, false);
    }
    if (!reference.empty()) {
      add(reference_name, reference, true);
    }
    configurations.push_back({{"id", id},
                              {"kind", "shares"},
                              {"bins", bins},
                              {"y", "share of the elements"},
                              {"series", std::move(series)}});
    figures += figure(id, title, note, html_table(head, rows));
  }
};

/// Sums of a histogram over all judged outputs, by mode. Empty for reports that lack it.
std::map<std::string, std::vector<double>> sums_of(const HtmlSource& source, const char* histogram, std::size_t bins) {
  std::map<std::string, std::vector<double>> sums;
  for (std::size_t i = 0; i < source.facts.size(); ++i) {
    for (const json& run : part_at(source.cases[i], "runs")) {
      for (const json& output : part_at(run, "outputs")) {
        const json& counts = part_at(part_at(output, "metrics"), histogram);
        if (!counts.is_array() || counts.size() != bins) {
          continue;
        }
        std::vector<double>& sum = sums[source.facts[i].mode];
        sum.resize(bins);
        for (std::size_t bin = 0; bin < bins; ++bin) {
          const double count = number_value(counts[bin]);
          sum[bin] += std::isfinite(count) && count > 0 ? count : 0;
        }
      }
    }
  }
  return sums;
}

void add_ratios(const HtmlSource& source, Charts& charts) {
  Curves products, others;
  for (const CaseFacts& facts : source.facts) {
    const std::optional<double> length = sum_length(facts);
    if (!length.has_value() || std::isnan(facts.ratio)) {
      continue;
    }
    const bool product = facts.op == "gemm";
    double& largest = (product ? products : others)[product ? facts.mode : facts.op][*length];
    largest = std::max(largest, facts.ratio);
  }
  charts.add_curves("ratio-products", "Error/limit of products against k",
                    "largest of all shapes with that k; 1 is the limit", products);
  charts.add_curves("ratio-others", "Error/limit of other ops against the length of their sums",
                    "keys, columns or rows that are added; largest of all modes", others);
}

void add_ulps(const HtmlSource& source, Charts& charts) {
  constexpr std::size_t kBins = 16;
  auto sums = sums_of(source, "ulp_histogram", kBins);
  std::size_t used = 1;
  for (const auto& [mode, counts] : sums) {
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      used = counts[bin] > 0 ? std::max(used, bin + 1) : used;
    }
  }
  std::vector<std::string> bins = {"0", "to ½", "to 1"};
  for (std::size_t bin = 3; bin < kBins; ++bin) {
    bins.push_back(bin + 1 == kBins ? "more" : fmt::format("to {}", 1U << (bin - 2)));
  }
  bins.resize(std::min(used, bins.size()));
  charts.add_shares("ulps", "Errors in ulp of the output", "all judged outputs, by mode", bins, std::move(sums), {},
                    "");
}

void add_spread(const HtmlSource& source, Charts& charts) {
  const std::vector<double> edges = {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 8, HUGE_VAL};
  std::vector<std::string> bins;
  std::vector<double> normal;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    bins.push_back(std::isinf(edges[i + 1]) ? fmt::format("over {}", edges[i])
                                            : fmt::format("{}–{}", edges[i], edges[i + 1]));
    normal.push_back(std::erfc(edges[i] / std::sqrt(2.0)) - std::erfc(edges[i + 1] / std::sqrt(2.0)));
  }
  charts.add_shares("spread", "Errors in predicted standard deviations, |z|",
                    "to the left of the normal curve: more precise than the model allows", bins,
                    sums_of(source, "z_histogram", bins.size()), normal, "normal");
}

}  // namespace

std::string charts_section(const HtmlSource& source) {
  Charts charts;
  add_ratios(source, charts);
  add_ulps(source, charts);
  add_spread(source, charts);
  if (charts.figures.empty()) {
    return "";
  }
  return heading("charts", "How large the errors are") + "<div class=\"charts\">\n" + charts.figures +
         "</div>\n<script type=\"application/json\" id=\"chart-data\">" + script_json(charts.configurations) +
         "</script>\n";
}

}  // namespace numcheck::report::views
