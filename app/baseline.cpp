#include "baseline.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "annotations.hpp"
#include "command.hpp"
#include "core/printable.hpp"
#include "files.hpp"
#include "report/comparison.hpp"

namespace numcheck::app {
namespace {

using nlohmann::json;

std::set<std::string> digests_of(const plan::Plan& plan) {
  std::set<std::string> digests;
  for (const plan::Case& c : plan.cases) {
    digests.insert(c.digest.hex());
  }
  return digests;
}

/// In brief form. Throws core::IoError unless it can be compared and has one of the plan's cases.
json usable(const std::string& path, const plan::Plan& plan) {
  json base = read_brief(path);
  static_cast<void>(report::compare_reports(base, base, {}));
  const std::set<std::string> known = digests_of(plan);
  const json& cases = base.at("cases");
  if (std::ranges::none_of(cases,
                           [&known](const json& c) { return known.contains(c.at("digest").get<std::string>()); })) {
    throw core::IoError(
        fmt::format("{} in the plan: another plan, seed or version made it",
                    cases.size() == 1 ? "its only case is not" : fmt::format("none of its {} cases is", cases.size())));
  }
  return base;
}

/// How many of its cases are not in the plan: neither selected nor left out.
std::size_t not_in_plan(const json& base, const plan::Plan& plan) {
  const std::set<std::string> known = digests_of(plan);
  return static_cast<std::size_t>(std::ranges::count_if(
      base.at("cases"), [&known](const json& c) { return !known.contains(c.at("digest").get<std::string>()); }));
}

}  // namespace

std::optional<Baseline> Baseline::load(const std::string& option, const plan::Plan& plan) {
  const std::string path = !option.empty() ? option : plan.baseline ? plan.baseline->path : "";
  if (path.empty()) {
    return std::nullopt;
  }
  try {
    json base = usable(path, plan);
    const std::size_t others = not_in_plan(base, plan);
    return Baseline(path, std::move(base), others);
  } catch (const core::IoError& error) {
    const std::string what = fmt::format("cannot compare with the baseline {}: {}", path, error.what());
    if (!option.empty()) {
      throw core::UsageError("--baseline: " + what);
    }
    plan::Diagnostic diagnostic = plan.baseline->place;
    diagnostic.text = what;
    diagnostic.hint = "make it with te-numcheck run PLAN --brief-json " + path;
    throw plan::PlanError({diagnostic});
  }
}

void Baseline::compare(json& report, bool skip_skipped) const {
  const report::ComparisonOptions options{
      .allow_worse = report::ComparisonOptions{}.allow_worse, .only_new = true, .skip_skipped = skip_skipped};
  report["comparison"] = report::comparison_record(report::compare_reports(brief_, report, options),
                                                   std::filesystem::path(path_).filename().string());
}

core::ExitCode gate_baseline(Context& context, const json& report, core::ExitCode otherwise) {
  const auto comparison = report.find("comparison");
  if (comparison == report.end()) {
    return otherwise;
  }
  const auto regressions = comparison->at("summary").at("regressions").get<std::size_t>();
  if (regressions == 0) {
    return otherwise;
  }
  const std::string text =
      fmt::format("{} regression{} against the baseline {}: {}", regressions, regressions == 1 ? "" : "s",
                  comparison->at("baseline").get<std::string>(), comparison->at("sentence").get<std::string>());
  context.terminal.err(core::printable(text) + "\n");
  context.terminal.annotate(annotation(text));
  return core::ExitCode::numerics_differ;
}

}  // namespace numcheck::app
