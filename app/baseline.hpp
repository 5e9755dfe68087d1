// The report that a run is compared with.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "plan/plan.hpp"

namespace numcheck::app {

struct Context;

class Baseline {
 public:
  /// The report that --baseline names, or else the plan; nothing without either. Throws core::UsageError, or with the
  /// position in the plan plan::PlanError, if it cannot be read and compared, or has none of the plan's cases.
  [[nodiscard]] static std::optional<Baseline> load(const std::string& option, const plan::Plan& plan);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Cases of the baseline that the plan does not have, of which the run says nothing.
  [[nodiscard]] std::size_t others() const noexcept { return others_; }

  /// Adds "comparison" to a finished run's report. Only cases that the report has count; those that it skipped do not if
  /// `skip_skipped`.
  void compare(nlohmann::json& report, bool skip_skipped) const;

 private:
  Baseline(std::string path, nlohmann::json brief, std::size_t others)
      : path_(std::move(path)), brief_(std::move(brief)), others_(others) {}

  std::string path_;
  nlohmann::json brief_;  ///< in brief form: it is held while the cases run
  std::size_t others_;
};

/// The exit code of a report that may have a "comparison": 1 for a regression, which is said on stderr, else `otherwise`.
[[nodiscard]] core::ExitCode gate_baseline(Context& context, const nlohmann::json& report, core::ExitCode otherwise);

}  // namespace numcheck::app
