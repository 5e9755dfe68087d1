// What `doctor` says about TransformerEngine.
#pragma once

#include <span>
#include <string>

namespace numcheck::kernels::transformer_engine {

struct Inspection {
  bool usable = false;
  std::string sentence;  ///< version and path, and which functions it lacks; or why it cannot be used
};

/// Finds the library, loads it and looks for every function that the bindings may call.
[[nodiscard]] Inspection inspect_library(std::span<const std::string> paths, const std::string& lib_dir);

}  // namespace numcheck::kernels::transformer_engine
