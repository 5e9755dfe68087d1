// Activations, forward.
#pragma once

#include "op/activation_params.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// The descriptor of `activation_fwd`. With f and u of ActivationKind, for every row,
///
///   y_j = f(x_j)            x [rows, hidden]
///   y_j = f(a_j) u(b_j)     gated: x [rows, 2 hidden], a its first half, b its second; u(b) = b except clamped_swiglu
///
/// Ports: x, y [rows, hidden]. FP32 arithmetic, one rounding of y. With an FP8 output y = sat(RN(RN32(value *
/// y_scale))) and y_amax = max |value|. Parameters: ActivationParams. Source: TransformerEngine
/// include/transformer_engine/activation.h, common/util/math.h.
[[nodiscard]] const Op& activation_fwd();

}  // namespace numcheck::op
