#include "report/summary.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace numcheck::report {
namespace {

using verdict::Status;

constexpr std::array kFailures = {Status::fail, Status::xpass};

std::size_t count_of(const nlohmann::json& summary, Status status) {
  return summary.value(verdict::status_name(status), std::size_t{0});
}

bool any(const nlohmann::json& summary, const auto& statuses) {
  return std::ranges::any_of(statuses, [&summary](Status status) { return count_of(summary, status) > 0; });
}

}  // namespace

nlohmann::json summarise(std::span<const nlohmann::json> cases) {
  nlohmann::json summary = {{"cases", cases.size()}};
  for (const verdict::Status status : verdict::all_statuses()) {
    summary[verdict::status_name(status)] = std::ranges::count_if(
        cases, [status](const nlohmann::json& record) { return record.at("status") == verdict::status_name(status); });
  }
  return summary;
}

core::ExitCode exit_code_of(const nlohmann::json& summary, const GatePolicy& policy) {
  if (any(summary, kFailures) || any(summary, policy.fail_on)) {
    return core::ExitCode::numerics_differ;
  }
  if (any(summary, std::array{Status::error, Status::crashed, Status::timeout})) {
    return core::ExitCode::environment;
  }
  if (!any(summary, std::array{Status::pass, Status::warn}) && !policy.allow_empty) {
    return core::ExitCode::nothing_verified;
  }
  return core::ExitCode::success;
}

std::vector<std::pair<Status, std::size_t>> gated_by(const nlohmann::json& summary, const GatePolicy& policy) {
  std::vector<std::pair<Status, std::size_t>> counts;
  for (const Status status : policy.fail_on) {
    if (const std::size_t count = count_of(summary, status); count > 0 && !any(summary, kFailures)) {
      counts.emplace_back(status, count);
    }
  }
  return counts;
}

}  // namespace numcheck::report
