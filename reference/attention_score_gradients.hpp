// The gradients of scaled products, which FP8 attention quantises: op::has_scales.
#pragma once

#include <span>
#include <string_view>

#include "op/reference.hpp"
#include "reference/attention_tile.hpp"

namespace numcheck::reference {

/// max |scale dt| over all queries and the keys that they see; NaN does not count.
[[nodiscard]] double largest_score_gradient(const AttentionGradients& gradients);

/// Their scale, or its inverse: ports dp_scale, dp_scale_inv.
void derive_gradient_scale(const op::DeriveRequest& request, std::span<double> values);

}  // namespace numcheck::reference
