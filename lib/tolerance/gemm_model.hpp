// The error model of matrix products.
#pragma once

#include <string_view>

#include "model/error_model.hpp"

namespace numcheck::tolerance {

/// GEMM, ports "d" and "d_amax": closed forms over the admissible schedules, see accumulation.hpp and gemm_model.cpp.
/// Throws core::InternalError for any other port.
[[nodiscard]] model::ErrorModel gemm_error_model(const model::ModelRequest& request, std::string_view port);

}  // namespace numcheck::tolerance
