// What an executor is made with.
#pragma once

#include <string>
#include <vector>

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels {

struct ExecutorOptions {
  std::string lib_dir;  ///< where NVIDIA's libraries are searched; empty: TE_NUMCHECK_LIB_DIR, then the usual places
  std::vector<std::string> te_libs;  ///< TransformerEngine's core libraries; empty: looked for
  Bindings bindings;                 ///< what the backends compute
};

}  // namespace numcheck::kernels
