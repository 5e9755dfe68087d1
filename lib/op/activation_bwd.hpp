// Activations, backward.
#pragma once

#include "op/activation_params.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// The descriptor of `activation_bwd`: the gradient of `activation_fwd` with respect to its input. With f, f', u of
/// ActivationKind, for every row,
///
///   dx_j = dy_j f'(x_j)                                             x, dx [rows, hidden]
///   dx = [da, db], da_j = f'(a_j) dy_j u(b_j), db_j = dy_j f(a_j) u'(b_j)   gated: x, dx [rows, 2 hidden]
///
/// u' is 1, and 0 where clamped_swiglu clamps b. Ports: dy [rows, hidden], x, dx. FP32 arithmetic, one rounding of dx.
/// With an FP8 output dx = sat(RN(RN32(value * dx_scale))) and dx_amax = max |value|. Parameters: ActivationParams.
/// Source: TransformerEngine include/transformer_engine/activation.h, common/util/math.h.
[[nodiscard]] const Op& activation_bwd();

}  // namespace numcheck::op
