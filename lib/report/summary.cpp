#include "report/summary.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

namespace numcheck::report {
namespace {

constexpr std::array kStatuses = {Status::pass,        Status::warn,    Status::fail,  Status::inconclusive,
                                  Status::unsupported, Status::skipped, Status::error, Status::crashed,
                                  Status::timeout,     Status::xfail,   Status::xpass};

}  // namespace

const char* status_name(Status status) noexcept {
  switch (status) {
    case Status::pass:
      return "pass";
    case Status::warn:
      return "warn";
    case Status::fail:
      return "fail";
    case Status::inconclusive:
      return "inconclusive";
    case Status::unsupported:
      return "unsupported";
    case Status::skipped:
      return "skipped";
    case Status::error:
      return "error";
    case Status::crashed:
      return "crashed";
    case Status::timeout:
      return "timeout";
    case Status::xfail:
      return "xfail";
    case Status::xpass:
      return "xpass";
  }
  return "error";
}

std::span<const Status> all_statuses() noexcept {
  return kStatuses;
}

std::optional<Status> parse_status(std::string_view name) noexcept {
  const auto* found = std::ranges::find_if(kStatuses, [name](Status status) { return name == status_name(status); });
  return found == kStatuses.end() ? std::nullopt : std::optional(*found);
}

nlohmann::json summarise(std::span<const nlohmann::json> cases) {
  nlohmann::json summary = {{"cases", cases.size()}};
  for (const Status status : kStatuses) {
    summary[status_name(status)] = std::ranges::count_if(
        cases, [status](const nlohmann::json& record) { return record.at("status") == status_name(status); });
  }
  return summary;
}

core::ExitCode exit_code_of(const nlohmann::json& summary, const GatePolicy& policy) {
  const auto any = [&summary](std::initializer_list<Status> statuses) {
    return std::ranges::any_of(
        statuses, [&summary](Status status) { return summary.value(status_name(status), std::int64_t{0}) > 0; });
  };
  if (any({Status::fail, Status::xpass}) || (policy.strict && any({Status::inconclusive})) ||
      (policy.require_supported && any({Status::unsupported}))) {
    return core::ExitCode::numerics_differ;
  }
  if (any({Status::error, Status::crashed, Status::timeout})) {
    return core::ExitCode::environment;
  }
  if (!any({Status::pass, Status::warn, Status::xfail}) && !policy.allow_empty) {
    return core::ExitCode::nothing_verified;
  }
  return core::ExitCode::success;
}

}  // namespace numcheck::report
