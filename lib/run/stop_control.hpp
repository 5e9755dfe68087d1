// When a run stops before its last case: interrupts, --fail-fast, --budget.
#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>

#include "run/pipeline.hpp"
#include "run/result_collector.hpp"
#include "run/stuck_watch.hpp"

namespace numcheck::run {

/// Thread-safe.
class StopControl {
 public:
  /// Starts the budget's clock. All three must outlive this object.
  StopControl(const PipelineOptions& options, const ResultCollector& results, worker::WorkerPool& pool);

  ~StopControl();
  StopControl(const StopControl&) = delete;
  StopControl& operator=(const StopControl&) = delete;

  /// True if no further cases may start. Once true, it stays true.
  [[nodiscard]] bool must_stop();
  /// Runs on its own thread: cancels waiting tasks when the run must stop, kills running ones and cancels references at
  /// the second interrupt, and reports stuck work to PipelineOptions::on_stuck.
  void watch(const std::stop_token& stop);

  /// The work that watch() checks.
  [[nodiscard]] StuckWatch& stuck() noexcept { return stuck_; }

  [[nodiscard]] bool interrupted() const noexcept { return cause_ == Cause::interrupt; }
  [[nodiscard]] bool budget_used_up() const noexcept { return cause_ == Cause::budget; }
  /// Why cases were not started, for their records.
  [[nodiscard]] std::string why_not_started() const;

 private:
  enum class Cause { none, interrupt, failures, budget };
  [[nodiscard]] Cause check() const;

  const PipelineOptions& options_;
  const ResultCollector& results_;
  worker::WorkerPool& pool_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<Cause> cause_ = Cause::none;
  StuckWatch stuck_;
};

}  // namespace numcheck::run
