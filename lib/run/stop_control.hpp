// When a run stops before its last case: interrupts, --fail-fast, --budget.
#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>

#include "run/pipeline.hpp"
#include "run/result_collector.hpp"
#include "run/work_watch.hpp"

namespace numcheck::run {

/// Thread-safe.
class StopControl {
 public:
  /// Starts the budget's clock. All three must outlive this object.
  StopControl(const PipelineOptions& options, const ResultCollector& results, worker::WorkerPool& pool);

  /// True if no further cases may start. Once true, it stays true.
  [[nodiscard]] bool must_stop();
  /// Runs on its own thread: cancels waiting tasks when the run must stop; gives up all that runs at the second interrupt,
  /// or some seconds after the first if this process still has work that began before; checks time limits, and reports
  /// stuck work to PipelineOptions::on_stuck.
  void watch(const std::stop_token& stop);

  /// The work that watch() checks.
  [[nodiscard]] WorkWatch& work() noexcept { return work_; }

  [[nodiscard]] bool interrupted() const noexcept { return cause_ == Cause::interrupt; }
  [[nodiscard]] bool budget_used_up() const noexcept { return cause_ == Cause::budget; }
  /// Why a case was not started or, if its inputs were prepared and what ran was given up, not finished; for its record.
  [[nodiscard]] std::string why_skipped(bool started) const;

 private:
  enum class Cause { none, interrupt, failures, budget };
  [[nodiscard]] Cause check() const;
  /// True if what runs is not to be finished. `since_s`: time since the first interrupt.
  [[nodiscard]] bool gives_up(double since_s);

  const PipelineOptions& options_;
  const ResultCollector& results_;
  worker::WorkerPool& pool_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<Cause> cause_ = Cause::none;
  std::atomic<bool> gave_up_ = false;
  WorkWatch work_;
};

}  // namespace numcheck::run
