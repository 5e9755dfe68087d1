// What a task's time goes into, for a trace: sending it, the device, handing over what it left.
#pragma once

#include <optional>

#include <fmt/format.h>

#include "core/trace.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {

/// One phase follows the other, on the thread that talks to the worker.
class TaskSpans {
 public:
  explicit TaskSpans(const Task& task)
      : section_(core::current_trace().trace, "worker", {.name = task.c->id}), phase_(std::in_place, "send") {}

  /// The device has it.
  void start() { phase_.emplace("device"); }
  /// Passes an algorithm's outputs on, for which the device has to wait.
  void hand_over(const RunReport& report, const RunSink& on_run) {
    phase_->note([&report] { return fmt::format("{}: {:.4g} ms", report.label, 1e3 * report.device_s); });
    phase_.emplace("hand over");
    on_run(report);
    phase_.emplace("device");
  }

 private:
  core::TraceSection section_;
  std::optional<core::Span> phase_;
};

}  // namespace numcheck::worker
