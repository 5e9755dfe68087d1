// Environment variables that the program reads, for the manual page. Those that change numbers have a table of their own:
// machine::numeric_variables().
#pragma once

#include <span>
#include <string_view>

namespace numcheck::app {

struct VariableInfo {
  std::string_view names;  ///< one, or several that belong together: "CUDA_HOME, CUDA_PATH"
  std::string_view doc;
};

[[nodiscard]] std::span<const VariableInfo> variables() noexcept;

}  // namespace numcheck::app
