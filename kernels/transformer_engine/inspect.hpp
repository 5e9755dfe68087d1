// What `doctor` says about TransformerEngine.
#pragma once

#include <span>
#include <string>

#include "kernels/cuda_support/inspect.hpp"

namespace numcheck::kernels::transformer_engine {

/// Finds the library, loads it and looks for every function that the bindings may call.
[[nodiscard]] cuda_support::Inspection inspect_library(std::span<const std::string> paths, const std::string& lib_dir);

}  // namespace numcheck::kernels::transformer_engine
