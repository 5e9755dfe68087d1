#include "report/summary.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <nlohmann/json.hpp>

namespace numcheck::report {

nlohmann::json summarise(std::span<const nlohmann::json> cases) {
  nlohmann::json summary = {{"cases", cases.size()}};
  for (const verdict::Status status : verdict::all_statuses()) {
    summary[verdict::status_name(status)] = std::ranges::count_if(
        cases, [status](const nlohmann::json& record) { return record.at("status") == verdict::status_name(status); });
  }
  return summary;
}

core::ExitCode exit_code_of(const nlohmann::json& summary, const GatePolicy& policy) {
  const auto any = [&summary](std::initializer_list<verdict::Status> statuses) {
    return std::ranges::any_of(statuses, [&summary](verdict::Status status) {
      return summary.value(verdict::status_name(status), std::int64_t{0}) > 0;
    });
  };
  if (any({verdict::Status::fail, verdict::Status::xpass}) || (policy.strict && any({verdict::Status::inconclusive})) ||
      (policy.require_supported && any({verdict::Status::unsupported}))) {
    return core::ExitCode::numerics_differ;
  }
  if (any({verdict::Status::error, verdict::Status::crashed, verdict::Status::timeout})) {
    return core::ExitCode::environment;
  }
  if (!any({verdict::Status::pass, verdict::Status::warn, verdict::Status::xfail}) && !policy.allow_empty) {
    return core::ExitCode::nothing_verified;
  }
  return core::ExitCode::success;
}

}  // namespace numcheck::report
