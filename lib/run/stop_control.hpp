// When a run stops before its last case: interrupts, --fail-fast, --budget.
#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>

#include "run/case_book.hpp"
#include "run/pipeline.hpp"
#include "run/stuck_watch.hpp"

namespace numcheck::run {

/// Thread-safe.
class StopControl {
 public:
  /// The budget runs from here. All three must outlive it.
  StopControl(const PipelineOptions& options, const CaseBook& book, worker::WorkerPool& pool);

  /// True if no further case is to start. Once true, it stays so.
  [[nodiscard]] bool must_stop();
  /// While other threads compute or wait: cancels what waits, kills what runs at the second interrupt, and tells
  /// PipelineOptions::on_stuck what does not come back.
  void watch(const std::stop_token& stop);

  /// What the watching thread looks at.
  [[nodiscard]] StuckWatch& stuck() noexcept { return stuck_; }

  [[nodiscard]] bool interrupted() const noexcept { return cause_ == Cause::interrupt; }
  /// Why cases were not started, as a sentence for the record.
  [[nodiscard]] std::string why_not_started() const;

 private:
  enum class Cause { none, interrupt, failures, budget };
  [[nodiscard]] Cause look() const;

  const PipelineOptions& options_;
  const CaseBook& book_;
  worker::WorkerPool& pool_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<Cause> cause_ = Cause::none;
  StuckWatch stuck_;
};

}  // namespace numcheck::run
