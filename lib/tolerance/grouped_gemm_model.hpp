// The error model of grouped matrix products.
#pragma once

#include <string_view>

#include "model/error_model.hpp"

namespace numcheck::tolerance {

/// That of the group's own product, by gemm_error_model(): the request's operands are those of the group.
[[nodiscard]] model::ErrorModel grouped_gemm_error_model(const model::ModelRequest& request, std::string_view port);

}  // namespace numcheck::tolerance
