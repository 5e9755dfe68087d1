// Magnitude and deviation of GEMM; described in gemm.hpp.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

[[nodiscard]] op::Yardsticks gemm_yardsticks(const op::ReferenceRequest& request);

}  // namespace numcheck::reference
