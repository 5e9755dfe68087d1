// Options for creating an executor.
#pragma once

#include <string>
#include <vector>

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels {

struct ExecutorOptions {
  std::string lib_dir;  ///< where to look for NVIDIA's libraries; empty: TE_NUMCHECK_LIB_DIR, then the usual places
  std::vector<std::string> te_libs;  ///< TransformerEngine's core libraries; empty: the installed one
  Bindings bindings;                 ///< what the backends compute
};

}  // namespace numcheck::kernels
