// From one algorithm's outputs to its result: comparison, gates, certificate.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "machine/device.hpp"
#include "report/record.hpp"
#include "run/execution.hpp"
#include "run/group.hpp"

namespace numcheck::run {

/// Statistics and certificates of outputs that were already compared, keyed by everything they depend on: algorithms
/// and environments that give the same bits are compared once.
class ComparisonCache {
 public:
  struct Entry {
    metric::Statistics statistics;
    tolerance::Certificate certificate;
  };
  [[nodiscard]] std::shared_ptr<const Entry> find(const std::string& key) const;
  void store(const std::string& key, std::shared_ptr<const Entry> entry);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Entry>> entries_;
};

/// What a run is judged against, beside the case itself.
struct EvaluationContext {
  Group* group = nullptr;
  const PreparedCase* prepared = nullptr;
  const machine::Device* device = nullptr;
  std::string backend;       ///< the one that ran, never "auto"
  ComparisonCache* cache = nullptr;
};

/// Waits for the references of the case's group, compares every output and judges. Adds the seconds spent comparing to
/// `comparison_s`.
[[nodiscard]] report::RunResult evaluate_run(const EvaluationContext& context, const RunReport& run,
                                             double& comparison_s);

/// The case's status from its runs: fail, error, inconclusive or pass; then the plan's xfail.
void conclude(report::CaseResult& result, const Outcome& outcome, const std::string& today);

}  // namespace numcheck::run
