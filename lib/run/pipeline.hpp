// The coordinator's work for a whole plan: inputs -> tasks -> references -> comparison -> verdict -> record.
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
  std::size_t done = 0;  ///< with those of an earlier run (--resume)
  std::size_t total = 0;
  std::size_t failed = 0;  ///< fail, error, crashed, timeout, xpass
  std::string last_id;
  double share = 0;  ///< of the predicted work of this run; cases of an earlier run are no part of it
};

/// A finished case: its object in the report, and its status for the exit code.
struct FinishedCase {
  verdict::Status status = verdict::Status::skipped;
  nlohmann::json record;
};

/// The tensors of one compared run of a case.
struct RunTensors {
  const plan::Case* c = nullptr;
  std::size_t number = 0;  ///< index of the run in its case
  const verdict::RunResult* result = nullptr;
  std::span<const worker::HostPort> ports;
  std::span<const op::OutputValues* const> expected;  ///< what outputs were judged by
  const op::Sample* sample = nullptr;                 ///< which elements `expected` holds
};

struct PipelineOptions {
  worker::WorkerOptions workers;
  std::uint64_t memory_bytes = 0;         ///< host memory for tensors; 0: machine default
  double reference_flops_limit = 1.5e12;  ///< of products: above it, the reference covers a sample of the outputs
  double no_wait_flops = 2e10;            ///< per thread: smaller groups do not wait to hear whether they can run
  std::size_t stop_after_failures = 0;    ///< 0: never
  double budget_s = 0;                    ///< no case starts after this time, and cheap ones run first; 0: no limit
  bool all_maps = false;                  ///< maps of errors also for outputs that pass
  std::string reproduce_prefix;           ///< "te-numcheck run plan.json": completed with --case DIGEST
  std::function<void(const Progress&)> on_progress;
  /// Called once, before the first case is submitted, with the first worker's hello. May throw.
  std::function<void(const worker::WorkerHello&)> on_hello;
  /// Called once for each finished case, in order of completion, one at a time; for the journal.
  std::function<void(const plan::Case&, const FinishedCase&)> on_finished;
  /// Called once for each compared run, on any thread, while its tensors exist. Must not throw.
  std::function<void(const RunTensors&)> on_tensors;
  /// Asked about a run that failed, on any thread, while its tensors (`ports`) exist: a finding that names the cause, if
  /// there is one. What it throws costs nothing but the explanation.
  std::function<std::optional<op::Finding>(const plan::Case&, const verdict::RunResult&,
                                           std::span<const worker::HostPort> ports)>
      explain_failure;
  /// Called on a separate thread when a reference never finishes, although its stop was requested when it exceeded the
  /// time limit. The callback should end the process; finished cases are already in the journal.
  std::function<void(const std::string&)> on_stuck;
  double reference_grace_s = 300;  ///< in addition to the time that a reference may take on the slowest machine
  /// 0: continue; 1: finish running cases, then stop; 2: stop now. Polled.
  std::function<int()> interrupted;
  /// Called once, on another thread, when work is still being finished a second after the first interrupt: what it is,
  /// as far as it happens in this process.
  std::function<void(const std::vector<std::string>&)> on_waiting;
};

struct PipelineResult {
  std::vector<FinishedCase> cases;  ///< in plan order
  worker::WorkerHello hello;        ///< of the first worker
  report::RunTimes times;
  std::size_t over_budget = 0;  ///< cases that were not started because PipelineOptions::budget_s was used up
  bool interrupted = false;
};

/// Runs the cases. `done` holds records of cases that need not run again (--resume), by digest.
/// Throws core::EnvironmentError if no worker can start at all.
[[nodiscard]] PipelineResult run_cases(const std::vector<plan::Case>& cases, prepare::Catalog catalog,
                                       const PipelineOptions& options,
                                       const std::vector<std::pair<core::Digest, nlohmann::json>>& done = {});

/// The same with an existing pool, which stays alive; `options.workers` must be what it was created with.
[[nodiscard]] PipelineResult run_cases(const std::vector<plan::Case>& cases, prepare::Catalog catalog,
                                       const PipelineOptions& options, worker::WorkerPool& pool,
                                       const std::vector<std::pair<core::Digest, nlohmann::json>>& done = {});

}  // namespace numcheck::run
