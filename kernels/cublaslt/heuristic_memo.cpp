#include "kernels/cublaslt/heuristic_memo.hpp"

namespace numcheck::kernels::cublaslt {
namespace {

/// More than are surveyed ahead of the case that runs; at most 6 MB, with 64 algorithms each.
constexpr std::size_t kMostKnown = 1024;

}  // namespace

const LtProblem::Candidates& HeuristicMemo::ask(const Call& call, LtProblem& problem, int requested,
                                                std::size_t workspace_limit) {
  const Key key{call.c->digest, requested};
  if (const auto found = known_.find(key); found != known_.end()) {
    return found->second;
  }
  LtProblem::Candidates answer = problem.heuristic(requested, workspace_limit);
  if (answer.status != CUBLAS_STATUS_SUCCESS && answer.status != CUBLAS_STATUS_NOT_SUPPORTED) {
    return failed_ = std::move(answer);
  }
  if (order_.size() == kMostKnown) {
    known_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(key);
  return known_.emplace(key, std::move(answer)).first->second;
}

}  // namespace numcheck::kernels::cublaslt
