#include "kernels/transformer_engine/inspect.hpp"

#include "core/error.hpp"
#include "kernels/transformer_engine/library.hpp"

namespace numcheck::kernels::transformer_engine {

Inspection inspect_library(std::span<const std::string> paths, const std::string& lib_dir) {
  const Search search = find_library(paths);
  if (!search.found.has_value()) {
    return {false, search.problem};
  }
  try {
    const Library library(*search.found, lib_dir);
    std::string absent;
    for (const std::string_view function : kKnownFunctions) {
      // Both forms of this function do the same; a version has the first, the second, or both.
      const bool has_other_form = function == kSetTensorParam.name || function == kSetTensorParamV2.name;
      if (!library.has(function) && !has_other_form) {
        absent += (absent.empty() ? "" : ", ") + readable_name(function);
      }
    }
    return {true, text_of(*search.found) + (absent.empty() ? std::string() : "; it lacks " + absent)};
  } catch (const core::EnvironmentError& error) {
    return {false, error.what()};
  }
}

}  // namespace numcheck::kernels::transformer_engine
