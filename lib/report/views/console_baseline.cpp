// The console's account of the comparison with a baseline.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/report.hpp"
#include "report/views/console.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {

using nlohmann::json;

std::string render_baseline(const json& report, const ConsoleOptions& options) {
  if (!report.contains("comparison")) {
    return "";
  }
  constexpr std::size_t kMaxShown = 10;
  const json& comparison = report.at("comparison");
  std::string text = paint("baseline", Colour::bold, options.colour) +
                     fmt::format(" {}: {}\n", comparison.at("baseline").get<std::string>(),
                                 comparison.at("sentence").get<std::string>());
  for (const json& change : comparison.at("settings")) {
    text += "  " + change.get<std::string>() + "\n";
  }
  const json& regressions = comparison.at("regressions");
  std::vector<std::string> digests;
  for (const json& change : regressions) {
    digests.push_back(change.at("digest").get<std::string>());
  }
  digests = short_digests(digests);
  for (std::size_t i = 0; i < std::min(kMaxShown, regressions.size()); ++i) {
    const json& change = regressions[i];
    const auto status = [&change](const char* side) {
      const std::string name = change.at(side).at("status").get<std::string>();
      return name.empty() ? std::string("not there") : name;
    };
    const double before = number_value(change.at("base").at("error_over_limit"));
    const double after = number_value(change.at("new").at("error_over_limit"));
    text +=
        fmt::format("  {}  {}   #{}\n      {} -> {}{}\n",
                    paint(change.at("change").get<std::string>(), Colour::red, options.colour),
                    change.at("id").get<std::string>(), digests[i], status("base"), status("new"),
                    std::isnan(before) || std::isnan(after)
                        ? ""
                        : fmt::format(", error/limit {} -> {}", ratio_text(change.at("base").at("error_over_limit")),
                                      ratio_text(change.at("new").at("error_over_limit"))));
    const std::string implementation = change.at("implementation").get<std::string>();
    text += implementation.empty() ? "" : "      " + implementation + "\n";
  }
  const auto all = comparison.at("summary").at("regressions").get<std::size_t>();
  if (all > kMaxShown) {
    text += fmt::format("  ({} more regressions: see report.json, or compare the reports)\n", all - kMaxShown);
  }
  return text;
}

}  // namespace numcheck::report::views
