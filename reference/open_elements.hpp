// Elements whose FP32 arithmetic may overflow in one legitimate order and not in another.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "op/reference.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {

/// Collects those of one output.
class OpenElements {
 public:
  /// [first, first + count) are. Called from any thread, at most once for each element.
  void note(std::size_t first, std::size_t count = 1);
  void leave(TrackedOutput& output);

 private:
  std::mutex mutex_;
  std::vector<op::OutputValues::Range> ranges_;
};

/// For op::Reference::settle: a finite result is as right as anywhere else, because no operation makes infinities finite again;
/// nothing is asked of any other.
[[nodiscard]] std::vector<op::Settled> settle_overflows(const op::FindingRequest& request);

}  // namespace numcheck::reference
