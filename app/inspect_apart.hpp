// Looks at a library in a process of its own: two versions of TransformerEngine do not fit into one, and one that
// crashes while it is loaded shall not take the others with it.
#pragma once

#include <string>

#include "kernels/transformer_engine/inspect.hpp"

namespace numcheck::app {

/// What `te-numcheck doctor --inspect` says of the library at `te_lib` (empty: the installed one).
[[nodiscard]] kernels::transformer_engine::Inspection inspect_apart(const std::string& te_lib,
                                                                    const std::string& lib_dir);

/// The child's side: inspects, and answers on the descriptor that it was given. Throws core::UsageError if there is
/// none.
void answer_inspection(const std::string& te_lib, const std::string& lib_dir);

}  // namespace numcheck::app
