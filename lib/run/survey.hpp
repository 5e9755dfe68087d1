// Asks workers which cases can run before the groups are prepared, so that nothing is prepared for cases that cannot.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "plan/case.hpp"
#include "prepare/grouping.hpp"
#include "worker/workers.hpp"

namespace numcheck::run {

/// Not thread-safe. The pool must be idle before the survey is destroyed.
class Survey {
 public:
  /// Groups will be queried in this order.
  Survey(worker::WorkerPool& pool, const std::vector<plan::Case>& cases, std::span<const prepare::GroupPlan> groups)
      : pool_(pool), cases_(cases), groups_(groups), answers_(cases.size()) {}

  /// Asks about the cases of all groups up to this one, and of some that follow, unless already asked.
  void ask_up_to(std::size_t group);

  /// True if all answers for a group have arrived.
  [[nodiscard]] bool is_answered(const prepare::GroupPlan& group);
  /// Waits for the answers for a group.
  void wait(const prepare::GroupPlan& group);
  /// `done` if the case can run, otherwise how it ends; nothing if the answer has not arrived.
  [[nodiscard]] std::optional<worker::Outcome> answer(std::size_t index);

 private:
  void ask(const std::vector<std::size_t>& indices);
  [[nodiscard]] bool has_answers(const prepare::GroupPlan& group) const;

  worker::WorkerPool& pool_;
  const std::vector<plan::Case>& cases_;
  std::span<const prepare::GroupPlan> groups_;
  std::size_t asked_groups_ = 0;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::vector<std::optional<worker::Outcome>> answers_;  ///< parallel to cases
};

}  // namespace numcheck::run
