// `gemm` as the simulated device offers it.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& gemm();

}  // namespace numcheck::kernels::sim
