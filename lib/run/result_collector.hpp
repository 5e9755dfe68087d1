// Collects the results of a run's cases.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "prepare/group.hpp"
#include "run/pipeline.hpp"

namespace numcheck::run {

/// Thread-safe except for restore and take.
class ResultCollector {
 public:
  /// Both must outlive the collector.
  ResultCollector(const std::vector<plan::Case>& cases, const PipelineOptions& options);

  /// Copies records of an earlier run, matched by digest; returns the indices of the remaining cases, in plan order.
  [[nodiscard]] std::vector<std::size_t> restore(const std::vector<std::pair<core::Digest, nlohmann::json>>& done);

  /// Adds a finished case and calls PipelineOptions::on_progress; also on_finished if `keep`.
  void finish(std::size_t index, const verdict::CaseResult& result, bool keep);
  /// Adds a group's times to the sums: some or all of its cases may end without a result.
  void add_times(const prepare::Group& group);

  [[nodiscard]] bool is_finished(std::size_t index) const;
  /// Cases that ended fail, error, crashed, timeout or xpass.
  [[nodiscard]] std::size_t failed() const;
  /// The cases and their accumulated times.
  [[nodiscard]] PipelineResult take() { return std::move(result_); }

 private:
  const std::vector<plan::Case>& cases_;
  const PipelineOptions& options_;
  mutable std::mutex mutex_;
  std::size_t finished_ = 0;
  std::size_t failed_ = 0;
  double finished_cost_s_ = 0;
  double whole_cost_s_ = 0;  ///< of the cases that were not restored
  PipelineResult result_;
};

}  // namespace numcheck::run
