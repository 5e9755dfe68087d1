// Error model of moe_unpermute.
#pragma once

#include <string_view>

#include "model/error_model.hpp"

namespace numcheck::tolerance {

/// That of tracked references, with a slope of what all elements share: TransformerEngine rounds probabilities to the format of x, and
/// those that are one number, or next to it, are all off by the same.
///   |mean r| + 3 s / sqrt(n),  r = (RN(p) - p) / p of n probabilities, s their standard deviation
/// Source: te_semantics, section 1.8.
[[nodiscard]] model::ErrorModel moe_unpermute_error_model(const model::ModelRequest& request, std::string_view port);

}  // namespace numcheck::tolerance
