// The coordinator's work: inputs -> tasks -> references -> comparison -> verdict -> record, for a whole plan.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "machine/device.hpp"
#include "op/reference.hpp"
#include "plan/plan.hpp"
#include "prepare/catalog.hpp"
#include "report/report.hpp"
#include "verdict/record.hpp"
#include "worker/workers.hpp"

namespace numcheck::run {

struct Progress {
  std::size_t done = 0;
  std::size_t total = 0;
  std::size_t failed = 0;  ///< fail, error, crashed, timeout, xpass
  std::string last_id;
};

/// One case, finished: its object in the report, and what the exit code needs of it.
struct FinishedCase {
  verdict::Status status = verdict::Status::skipped;
  nlohmann::json record;
};

/// One run of a case, compared: what it read and wrote, and what was expected.
struct RunTensors {
  const plan::Case* c = nullptr;
  std::size_t number = 0;  ///< of the run in its case
  const verdict::RunResult* result = nullptr;
  std::span<const worker::HostPort> ports;
  const op::Values* expected = nullptr;
  const op::Sample* sample = nullptr;  ///< which elements `expected` has
};

struct PipelineOptions {
  worker::WorkerOptions workers;
  std::uint64_t memory_bytes = 0;         ///< host memory for tensors; 0: machine default
  double reference_flops_limit = 1.5e12;  ///< above it only a sample of the outputs is referenced
  double unasked_flops = 1e10;            ///< groups up to this much work do not wait to hear whether they can run
  std::size_t stop_after_failures = 0;    ///< 0: never
  double budget_s = 0;                    ///< no case starts after this time, the cheapest come first; 0: no limit
  std::string reproduce_prefix;           ///< "te-numcheck run plan.json": completed with --case DIGEST
  std::function<void(const Progress&)> on_progress;
  /// Called once, before the first case is submitted, with what the first worker said of itself. May throw.
  std::function<void(const worker::WorkerHello&)> on_hello;
  /// Called once for each finished case, in order of finishing, one at a time: the journal.
  std::function<void(const plan::Case&, const FinishedCase&)> on_finished;
  /// Called once for each run that was compared, on pool threads, while its tensors are there. Must not throw.
  std::function<void(const RunTensors&)> on_tensors;
  /// Called on a thread of its own when a reference does not come back; the thread that computes it cannot be freed, so
  /// this ends the process. What has finished is in the journal by then.
  std::function<void(const std::string&)> on_stuck;
  double reference_grace_s = 300;  ///< beyond what the reference's work may take on the slowest machine
  /// 0: go on; 1: finish what runs, then stop; 2: stop now. Polled.
  std::function<int()> interrupted;
};

struct PipelineResult {
  std::vector<FinishedCase> cases;  ///< in plan order
  worker::WorkerHello hello;        ///< of the first worker
  report::RunTimes times;
  bool interrupted = false;
};

/// Runs the cases. `done` holds records of cases that need not run again (resume), by digest.
/// Throws core::EnvironmentError if no worker can start at all.
[[nodiscard]] PipelineResult run_cases(const std::vector<plan::Case>& cases, prepare::Catalog catalog,
                                       const PipelineOptions& options,
                                       const std::vector<std::pair<core::Digest, nlohmann::json>>& done = {});

/// The same with workers that are there already, and stay: `options.workers` is what they were made with.
[[nodiscard]] PipelineResult run_cases(const std::vector<plan::Case>& cases, prepare::Catalog catalog,
                                       const PipelineOptions& options, worker::WorkerPool& pool,
                                       const std::vector<std::pair<core::Digest, nlohmann::json>>& done = {});

}  // namespace numcheck::run
