// Cases on their way: submitted to a worker, judged, concluded, recorded.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prepare/group.hpp"
#include "run/evaluation_queue.hpp"
#include "run/handshake.hpp"
#include "run/memory_gate.hpp"
#include "run/pipeline.hpp"
#include "run/result_collector.hpp"
#include "run/stop_control.hpp"
#include "verdict/evaluate.hpp"

namespace numcheck::run {

/// What the cases of a group share. Memory is released when the last one has been compared.
struct SharedGroup {
  SharedGroup(MemoryGate::Lease lease, std::shared_ptr<prepare::Group> whole, bool small)
      : memory(std::move(lease)), group(std::move(whole)), is_small(small) {}

  MemoryGate::Lease memory;
  std::shared_ptr<prepare::Group> group;
  bool is_small;  ///< its work is not worth waking threads for; there are many such groups at a time
  verdict::ComparisonCache cache;
};

/// A worker goes on as soon as a run's outputs have been copied; threads of this class judge them. Thread-safe.
class CaseFlights {
 public:
  /// All must outlive this object; the handshake may come later, before the first call.
  CaseFlights(const std::vector<plan::Case>& cases, const PipelineOptions& options,
              const std::optional<Handshake>& handshake, ResultCollector& results, StopControl& stop,
              worker::WorkerPool& pool);

  /// Submits a case to the pool; its result is recorded when it has ended.
  void submit(std::size_t index, std::shared_ptr<SharedGroup> shared, prepare::PreparedCase prepared);
  /// Records a case that a worker has refused when it was asked; nothing if the question was interrupted.
  void refuse(std::size_t index, const worker::Outcome& answer);
  void skip(std::size_t index, std::string reason);
  void fail(std::size_t index, std::string reason);      ///< as `error`
  void time_out(std::size_t index, std::string reason);  ///< as `timeout`
  /// Waits until every submitted case has ended and has been judged. Rethrows the first exception of a callback.
  void wait_idle();

 private:
  struct Flight;
  struct Run;

  void on_run(const std::shared_ptr<Flight>& flight, const worker::RunReport& report);
  /// No case starts after the last failure that is allowed, so the worker has to wait for the verdict.
  void wait_if_failures_stop(const Flight& flight);
  void judge(Flight& flight, const Run& run);
  /// Before the first run is judged, adds what inputs and references of the case took.
  void wait_for_references(Flight& flight);
  void compare(Flight& flight, const Run& run);
  /// Adds what explain_failure says of the last run to its findings.
  void explain(Flight& flight, const Run& run);
  /// Calls on_tensors with the last run, unless it failed on the device and has no outputs.
  void show_tensors(const Flight& flight, const verdict::EvaluationContext& context);
  /// Concludes a case, applying known issues of this device, and adds it to the results.
  void conclude(std::size_t index, verdict::CaseResult& result, const worker::Outcome& outcome);
  /// Those of this device; without one, those of every device.
  [[nodiscard]] std::vector<plan::XFail> known_issues_of(const plan::Case& c) const;
  void finish(std::size_t index, const verdict::CaseResult& result);
  void finish_with(std::size_t index, verdict::Status status, std::string reason);

  const std::vector<plan::Case>& cases_;
  const PipelineOptions& options_;
  const std::optional<Handshake>& handshake_;
  ResultCollector& results_;
  StopControl& stop_;
  worker::WorkerPool& pool_;
  std::string today_;
  EvaluationQueue queue_;
};

}  // namespace numcheck::run
