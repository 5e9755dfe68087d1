// Algorithms of earlier cases, for cases that differ from these in nothing but their numbers.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "kernels/contract/backend.hpp"

namespace numcheck::kernels::harness {

/// A library may compile a kernel for every case, which takes half a second, and test plans often have a shape with several inputs,
/// one after another. A backend may keep its algorithms here if they depend on nothing but the op, its
/// parameters, the mode, the algorithms asked for and Call::chained, and if their launches keep nothing of the call.
class RecentAlgorithms {
 public:
  /// Keeps the last `most` algorithms, each of which may hold a compiled kernel. Those of a case stay together.
  explicit RecentAlgorithms(std::size_t most = 16) : most_(most) {}

  /// What `make` made of such a call before, or makes of this one. If it throws, nothing is kept.
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
