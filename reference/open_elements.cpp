#include "reference/open_elements.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace numcheck::reference {

void OpenElements::note(std::size_t first, std::size_t count) {
  const std::lock_guard lock(mutex_);
  ranges_.push_back({static_cast<std::int64_t>(first), static_cast<std::int64_t>(first + count)});
}

void OpenElements::leave(TrackedOutput& output) {
  std::ranges::sort(ranges_, {}, &op::OutputValues::Range::begin);
  for (std::size_t i = 0; i < ranges_.size();) {
    op::OutputValues::Range joined = ranges_[i++];
    for (; i < ranges_.size() && ranges_[i].begin == joined.end; ++i) {
      joined.end = ranges_[i].end;
    }
    output.open(static_cast<std::size_t>(joined.begin), static_cast<std::size_t>(joined.end - joined.begin));
  }
}

std::vector<op::Settled> settle_overflows(const op::FindingRequest& request) {
  std::vector<op::Settled> settled;
  for (std::size_t i = 0; i < request.expected->outputs.size(); ++i) {
    const op::OutputValues& expected = request.expected->outputs[i];
    const auto found = std::ranges::find(request.outputs, expected.port, &op::Delivered::port);
    if (found == request.outputs.end()) {
      continue;
    }
    for (const op::OutputValues::Range& open : expected.open) {
      for (auto at = static_cast<std::size_t>(open.begin); at < static_cast<std::size_t>(open.end); ++at) {
        if (!std::isfinite(found->value[at])) {
          settled.push_back({i, at, false});
        }
      }
    }
  }
  return settled;
}

}  // namespace numcheck::reference
