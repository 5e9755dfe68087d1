// Per-tensor scales, as TransformerEngine's current and delayed scaling compute them.
#pragma once

#include "core/dtype.hpp"

namespace numcheck::data {

/// scale = RN32(max_finite / amax); 1 if amax is 0, infinite or NaN; FLT_MAX if the quotient overflows.
/// Quantised code = sat(RN(x * scale)).
/// Source: TransformerEngine common/recipe/recipe_common.cuh, compute_scale_from_amax.
[[nodiscard]] float scale_from_amax(double amax, core::Dtype dtype) noexcept;

/// scale_inv = RN32(1 / scale). Source: TransformerEngine common/utils.cuh.
[[nodiscard]] float scale_inverse(float scale) noexcept;

}  // namespace numcheck::data
