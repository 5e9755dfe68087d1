#include "kernels/transformer_engine/inspect.hpp"

#include "core/error.hpp"
#include "kernels/transformer_engine/library.hpp"

namespace numcheck::kernels::transformer_engine {

cuda_support::Inspection inspect_library(std::span<const std::string> paths, const std::string& lib_dir) {
  cuda_support::Inspection inspection;
  const Search search = find_library(paths);
  if (!search.found.has_value()) {
    inspection.remark = search.problem;
    return inspection;
  }
  inspection.file = search.found->file.string();
  inspection.version = search.found->version.has_value() ? search.found->version->text : "";
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
    inspection.usable = true;
    inspection.remark = absent.empty() ? "" : "it lacks " + absent;
  } catch (const core::EnvironmentError& error) {
    inspection.remark = error.what();
  }
  return inspection;
}

}  // namespace numcheck::kernels::transformer_engine
