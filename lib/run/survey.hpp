// Which cases can run: asked of workers ahead of the groups' preparation, so that nothing is made for cases that
// cannot.
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

/// Used by one thread. Its pool must be idle before it is destroyed.
class Survey {
 public:
  /// Groups will be looked at in this order.
  Survey(worker::WorkerPool& pool, const std::vector<plan::Case>& cases, std::span<const prepare::GroupPlan> groups)
      : pool_(pool), cases_(cases), groups_(groups), answers_(cases.size()) {}

  /// Asks for the cases of the groups up to this one and of some that follow, as far as that has not been done.
  void ask_up_to(std::size_t group);

  /// True if the answers of a group are there.
  [[nodiscard]] bool is_answered(const prepare::GroupPlan& group);
  /// Waits for the answers of a group.
  void wait(const prepare::GroupPlan& group);
  /// Whether a case can run: `done` if so, else how it ends. Nothing if its answer is not there.
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
