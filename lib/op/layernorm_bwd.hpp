// LayerNorm, backward.
#pragma once

#include "op/norm_params.hpp"

namespace numcheck::op {

/// Parameters of `layernorm_bwd`: with xh_ij = rsigma_i (x_ij - mu_i) and g_ij = gamma'_j dz_ij,
///
///   dx_ij    = rsigma_i (g_ij - (mean_j(g_ij xh_ij) xh_ij + mean_j(g_ij)))
///   dgamma_j = sum_i dz_ij xh_ij
///   dbeta_j  = sum_i dz_ij
///
/// Ports: dz and x [rows, hidden], mu and rsigma [rows, 1] (FP32, as the forward pass with `epsilon` saves them),
/// gamma [1, hidden]; dx [rows, hidden], dgamma and dbeta [1, hidden]. FP32 arithmetic, one rounding of each output.
/// Source: TransformerEngine include/transformer_engine/normalization.h, common/normalization/layernorm.
struct LayernormBwdParams : NormParams {};

/// The descriptor of `layernorm_bwd`.
[[nodiscard]] const Op& layernorm_bwd();

}  // namespace numcheck::op
