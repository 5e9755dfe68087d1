// Inspects a library in a process of its own: one process cannot load two versions of TransformerEngine, and one that
// crashes while loading must not take the others with it.
#pragma once

#include <string>
#include <string_view>

#include "kernels/cuda_support/inspect.hpp"

namespace numcheck::app {

/// What `te-numcheck doctor --inspect NAME` says about a library: "cublaslt", "cublas", "cudnn", or "transformer_engine", which is
/// the one at `te_lib` (empty: the installed one).
[[nodiscard]] kernels::cuda_support::Inspection inspect_apart(const std::string& name, const std::string& te_lib,
                                                              const std::string& lib_dir);

/// The child's side: inspects, and answers on the descriptor that it inherited. Throws core::UsageError if there is none.
void answer_inspection(const std::string& name, const std::string& te_lib, const std::string& lib_dir);

}  // namespace numcheck::app
