// The error model of ops whose reference carries {y, B, V} per element.
#pragma once

#include "tolerance/error_model.hpp"

namespace numcheck::tolerance {

/// B and V as they come (op::OutputValues::magnitude and second_moment), plus one FP32 product where the output is
/// quantised (code = sat(RN(RN32(y * scale)))). kappa = 2: measured z-rms of correct kernels is 0.04 to 1.003.
/// Source: tensor_core_numerics section 5.5.
[[nodiscard]] ErrorModel tracked_error_model(const ModelRequest& request, std::string_view port);

}  // namespace numcheck::tolerance
