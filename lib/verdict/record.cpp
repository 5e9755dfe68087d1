#include "verdict/record.hpp"

#include <algorithm>
#include <array>

namespace numcheck::verdict {
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

}  // namespace numcheck::verdict
