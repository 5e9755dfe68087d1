// What has become of the cases of a run.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "prepare/group.hpp"
#include "run/pipeline.hpp"

namespace numcheck::run {

/// Thread-safe, but for take_over and take.
class CaseBook {
 public:
  /// Both must outlive the book.
  CaseBook(const std::vector<plan::Case>& cases, const PipelineOptions& options);

  /// Copies finished records of an earlier run, by digest; returns the indices of the other cases, in plan order.
  [[nodiscard]] std::vector<std::size_t> take_over(const std::vector<std::pair<core::Digest, nlohmann::json>>& done);

  /// Enters a finished case and tells PipelineOptions::on_progress; on_finished too, if it is to be `kept`.
  void finish(std::size_t index, const verdict::CaseResult& result, bool kept);
  /// Adds a group's times to the sums.
  void add_times(const prepare::Group& group);

  [[nodiscard]] bool is_finished(std::size_t index) const;
  /// Cases that ended fail, error, crashed, timeout or xpass.
  [[nodiscard]] std::size_t failed() const;
  /// The cases and the sums of their times.
  [[nodiscard]] PipelineResult take() { return std::move(result_); }

 private:
  const std::vector<plan::Case>& cases_;
  const PipelineOptions& options_;
  mutable std::mutex mutex_;
  std::size_t finished_ = 0;
  std::size_t failed_ = 0;
  PipelineResult result_;
};

}  // namespace numcheck::run
