// Runs a case in this process through generation, a simulated device, reference, comparison and verdict: the code of the
// coordinator and its workers, without processes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/harness/harness.hpp"
#include "verdict/record.hpp"

namespace numcheck::detect {

struct MiniResult {
  worker::Outcome outcome;
  std::vector<verdict::RunResult> runs;  ///< one per algorithm
};

/// Not thread-safe: one per thread.
class MiniRunner {
 public:
  /// Runs the case on a simulated device of that architecture. Judges its algorithms as if they had declared `rounding`;
  /// if there is none, by what they declare; `tamper` may change what they left.
  [[nodiscard]] MiniResult run(const plan::Case& c, int sm, const worker::ExecuteOptions& options,
                               const std::optional<model::DeclaredRounding>& rounding = {},
                               const std::function<void(std::span<const worker::HostPort>)>& tamper = {});

 private:
  kernels::harness::Harness harness_;
  std::map<int, std::unique_ptr<kernels::Backend>> backends_;
};

/// The first criterion that fails, in the order of the gates; null if none does.
[[nodiscard]] const tolerance::Criterion* first_failing(const verdict::RunResult& run);

/// One line about a case: id, gate, measured, limit, statistics.
[[nodiscard]] std::string describe_failure(const plan::Case& c, const verdict::RunResult& run);

}  // namespace numcheck::detect
