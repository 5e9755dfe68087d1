// Algorithms of the cases before, for those that differ from them in nothing but their numbers.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "kernels/contract/backend.hpp"

namespace numcheck::kernels::harness {

/// Some libraries compile a kernel for every plan they make, which takes half a second; plans often ask for the same shapes with
/// several inputs, one after another. A backend may keep its algorithms here if they depend on nothing but the op, its
/// parameters, the mode, the algorithms asked for and Call::chained, and if their launches keep nothing of the call.
class RecentAlgorithms {
 public:
  /// Kept are the last `most`, and no part of those of a case: each may hold a compiled kernel.
  explicit RecentAlgorithms(std::size_t most = 16) : most_(most) {}

  /// What `make` made of such a call before, or makes of this one. What it throws is passed on, and it is asked again.
  [[nodiscard]] std::vector<Algorithm> of(const Call& call,
                                          const std::function<std::vector<Algorithm>(const Call&)>& make);

 private:
  struct Made {
    const op::Op* op;
    op::Params params;
    const op::Mode* mode;
    plan::AlgorithmSpec asked;
    bool chained;
    std::vector<Algorithm> algorithms;
  };

  std::size_t most_, kept_ = 0;
  std::deque<Made> made_;  ///< the latest last
};

}  // namespace numcheck::kernels::harness
