#include "plan/device_condition.hpp"

#include <algorithm>
#include <charconv>
#include <compare>

namespace numcheck::plan {
namespace {

/// Compares only as many numbers as `end` has; numbers that `version` lacks count as 0.
std::strong_ordering compare_as_far(const Version& version, const Version& end) {
  for (std::size_t i = 0; i < end.size(); ++i) {
    const int number = i < version.size() ? version[i] : 0;
    if (number != end[i]) {
      return number <=> end[i];
    }
  }
  return std::strong_ordering::equal;
}

bool contains(const VersionRange& range, const Version& version) {
  return compare_as_far(version, range.from) >= 0 && compare_as_far(version, range.to) <= 0;
}

bool holds_for(const LibraryCondition& library, const DeviceFacts& device) {
  std::string_view text = device.driver;
  if (library.name != "driver") {
    const auto found = std::ranges::find(device.libraries, library.name, &std::pair<std::string, std::string>::first);
    text = found == device.libraries.end() ? std::string_view() : std::string_view(found->second);
  }
  const Version version = leading_version(text);
  return !version.empty() &&
         std::ranges::any_of(library.versions, [&](const VersionRange& range) { return contains(range, version); });
}

}  // namespace

bool holds(const DeviceCondition& condition, const DeviceFacts& device) {
  const auto is_in = [&](const ArchitectureRange& range) { return range.from <= device.sm && device.sm <= range.to; };
  return (condition.architectures.empty() || std::ranges::any_of(condition.architectures, is_in)) &&
         std::ranges::all_of(condition.libraries,
                             [&](const LibraryCondition& library) { return holds_for(library, device); });
}

Version leading_version(std::string_view text) {
  Version version;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (;;) {
    int number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) {
      return version;
    }
    version.push_back(number);
    if (rest == end || *rest != '.') {
      return version;
    }
    at = rest + 1;
  }
}

bool is_empty(const VersionRange& range) {
  const std::size_t common = std::min(range.from.size(), range.to.size());
  const Version first(range.from.begin(), range.from.begin() + static_cast<std::ptrdiff_t>(common));
  const Version last(range.to.begin(), range.to.begin() + static_cast<std::ptrdiff_t>(common));
  return first > last;
}

}  // namespace numcheck::plan
