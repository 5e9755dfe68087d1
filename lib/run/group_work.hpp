// What this process does for a group of cases: its inputs, and its references.
#pragma once

#include <memory>
#include <vector>

#include "core/trace.hpp"
#include "prepare/group.hpp"
#include "run/case_flights.hpp"
#include "run/memory_gate.hpp"
#include "run/pipeline.hpp"
#include "run/result_collector.hpp"
#include "run/stop_control.hpp"

namespace numcheck::run {

/// A group that has its memory, and what becomes of it.
struct AdmittedGroup {
  prepare::GroupPlan plan;
  MemoryGate::Lease memory;
  bool small;  ///< SharedGroup::is_small
  prepare::PreparedGroup made;
  std::shared_ptr<SharedGroup> shared;  ///< empty if its inputs cannot be prepared
};

/// Both within the time limits of the cases. Thread-safe, for different groups.
class GroupWork {
 public:
  /// All must outlive this object.
  GroupWork(const std::vector<plan::Case>& cases, prepare::Catalog catalog, const PipelineOptions& options,
            CaseFlights& flights, ResultCollector& results, StopControl& stop, worker::WorkerPool& pool)
      : cases_(cases),
        catalog_(catalog),
        options_(options),
        flights_(flights),
        results_(results),
        stop_(stop),
        pool_(pool) {}

  /// Whether its references are made of some rows at a time.
  [[nodiscard]] bool streams(const prepare::GroupPlan& plan) const;
  /// If that fails or takes too long, this is the result of its cases.
  void prepare(AdmittedGroup& group);
  /// Of a group whose inputs could be prepared; otherwise does nothing.
  void compute_references(const AdmittedGroup& group);

 private:
  /// The longest of its cases.
  [[nodiscard]] double time_limit(const prepare::GroupPlan& plan) const;

  const std::vector<plan::Case>& cases_;
  prepare::Catalog catalog_;
  const PipelineOptions& options_;
  CaseFlights& flights_;
  ResultCollector& results_;
  StopControl& stop_;
  worker::WorkerPool& pool_;
};

/// Operations of all cases of a group.
[[nodiscard]] double flops_of(const std::vector<plan::Case>& cases, const prepare::GroupPlan& plan);

/// As a trace names it.
[[nodiscard]] core::TraceSubject subject_of(const std::vector<plan::Case>& cases, const prepare::GroupPlan& plan);

}  // namespace numcheck::run
