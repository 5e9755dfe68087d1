// The heuristic's answers of late.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <utility>

#include "core/hash.hpp"
#include "kernels/contract/backend.hpp"
#include "kernels/cublaslt/problem.hpp"

namespace numcheck::kernels::cublaslt {

/// A case is asked for up to three times: when the plan is surveyed, before it runs, and when it runs. Asking takes the
/// library longer than a small product.
class HeuristicMemo {
 public:
  /// What the library says to `problem`, which is that of the call's case. Valid until the next call.
  [[nodiscard]] const LtProblem::Candidates& ask(const Call& call, LtProblem& problem, int requested,
                                                 std::size_t workspace_limit);

 private:
  using Key = std::pair<core::Digest, int>;

  std::map<Key, LtProblem::Candidates> known_;
  LtProblem::Candidates failed_;  ///< the last answer, if the library might answer differently next time
  std::deque<Key> order_;         ///< the oldest first
};

}  // namespace numcheck::kernels::cublaslt
