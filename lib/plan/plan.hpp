// From plan files to cases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/case.hpp"
#include "plan/diagnostic.hpp"

namespace numcheck::plan {

/// What the decoder must know about the catalog: the ops and the backends.
struct Vocabulary {
  std::vector<const op::Op*> ops;
  std::vector<std::string_view> backends;
  OpLookup lookup = nullptr;
  /// Names under which devices report versions: libraries and the driver.
  std::vector<std::string_view> libraries = {"cublaslt", "cudnn", "cuda_driver", "cuda_runtime", "driver"};
};

struct Limits {
  std::uint64_t max_cases = 100'000;
  std::uint64_t max_file_bytes = 64u << 20;
  /// Memory that the expanded cases may take; a plan that needs more is refused before it is expanded.
  std::uint64_t case_memory_bytes = UINT64_MAX;
  bool sandbox = false;  ///< refuse paths outside the plan's folder
  std::string today;     ///< ISO date; if given, known failures that have expired or soon will are warned of
};

/// The report that a plan's results are compared with.
struct BaselineFile {
  std::string path;  ///< from the working folder
  Diagnostic place;  ///< where the plan names it: an error that lacks its text
};

/// A plan after `extends`, defaults and sweeps: the cases in plan order.
struct Plan {
  std::string name;
  std::string description;
  std::uint64_t seed = 0;
  /// Of the merged document without comments, descriptions and baseline: 32 hex digits.
  std::string digest;
  std::optional<BaselineFile> baseline;
  std::vector<Case> cases;
  std::vector<Diagnostic> warnings;
  std::vector<std::string> files;  ///< the plan and what it extends, as paths from the working folder
};

/// Reads, merges, checks and expands a plan file, which must be a regular file; throws PlanError with all mistakes at
/// once. A case that names no backend has kAutoBackend, which is kept and means whatever the device has.
[[nodiscard]] Plan load_plan(const std::string& path, const Vocabulary& vocabulary, const Limits& limits);

/// The same from text; `path` is used for messages and relative paths.
[[nodiscard]] Plan parse_plan(std::string_view text, const std::string& path, const Vocabulary& vocabulary,
                              const Limits& limits);

/// JSON Schema (draft-07) of plans, generated from the descriptors.
[[nodiscard]] nlohmann::json plan_schema(const Vocabulary& vocabulary);

/// Environment variables that a plan may set, one by one (interface.md section 6).
struct EnvironmentVariable {
  std::string_view name;
  std::string_view doc;
};
[[nodiscard]] std::vector<EnvironmentVariable> settable_variables();

}  // namespace numcheck::plan
