// Environment variables that change numbers, and their current values.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::machine {

/// One row of the table of variables whose value can change a result or the choice of an algorithm.
struct NumericVariable {
  std::string_view name;
  std::string_view doc;
};

/// The table, in documentation order. Sources: reads observed at library start (getenv interposed under cuBLASLt 13.1
/// and cuDNN 9.19), the cuBLAS and cuDNN manuals, TransformerEngine's sources, OpenBLAS's and our own variables.
[[nodiscard]] std::span<const NumericVariable> numeric_variables() noexcept;

struct VariableState {
  std::string name;
  std::optional<std::string> value;  ///< nothing: unset, which is recorded too
  bool listed = true;                ///< false: not in the table, but set and of a family that may change numbers
};

/// Every variable of the table with its value in this process, set or not; then, sorted by name, variables that are set
/// and belong to a family of the table (CUBLAS*, CUDNN_*, NVTE_*, ...) without being in it. A value with a path becomes
/// "(path)", because reports carry no absolute paths.
[[nodiscard]] std::vector<VariableState> numeric_environment();

}  // namespace numcheck::machine
