// What every view shows of a case, from a full or a brief record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Who counts a case with this status: it passed, failed, could not be judged, or did not run.
enum class Outcome : std::uint8_t { passed, failed, broken, skipped };
[[nodiscard]] Outcome outcome_of(std::string_view status) noexcept;

struct CaseFacts {
  std::string id, digest, op, mode, backend, status;
  std::string reason;     ///< may be empty
  std::string cause;      ///< the first that a finding names; may be empty
  std::string reproduce;  ///< command line; empty in a brief record
  double seconds = 0;     ///< all stages together; 0 in a brief record
  double ratio = 0;       ///< largest error/limit; NaN if nothing was judged
  /// That of gates in which the output's own rounding takes up to all of the limit; NaN if there are none.
  double rounding = 0;
  double others = 0;     ///< that of all other gates; NaN if there are none
  std::string tightest;  ///< "d: G1 bound", the gate with that ratio; empty if nothing was judged
};

/// Throws nlohmann::json::exception if the record lacks something.
[[nodiscard]] CaseFacts facts_of(const nlohmann::json& record);

/// Measured over limit of a gate as it is written; infinite for a failure without a ratio.
[[nodiscard]] double ratio_of_criterion(const nlohmann::json& criterion);

/// What makes the run prove less than others do: "fault planted: scale_half", "one run each: repeatable bits are not tested".
[[nodiscard]] std::vector<std::string> caveats_of(const nlohmann::json& report);

/// "the planted fault changed nothing in 3 cases, as in ...": those that did not fail, for that reason; empty if there are none.
[[nodiscard]] std::string unseen_fault_text(const nlohmann::json& report);

/// "NVIDIA H200 · driver 580.65 · cublaslt 13.1.0 · ...".
[[nodiscard]] std::string machine_line(const nlohmann::json& report);

}  // namespace numcheck::report
