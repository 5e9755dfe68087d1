// RMSNorm, backward.
#pragma once

#include "op/norm_params.hpp"

namespace numcheck::op {

/// Parameters of `rmsnorm_bwd`: with xh_ij = rsigma_i x_ij and g_ij = gamma'_j dz_ij,
///
///   dx_ij    = rsigma_i (g_ij - mean_j(g_ij xh_ij) xh_ij) [+ add_ij]
///   dgamma_j = sum_i dz_ij xh_ij
///
/// Ports: dz and x [rows, hidden], rsigma [rows, 1] (FP32, as the forward pass with `epsilon` saves it), gamma
/// [1, hidden], with `add` also add [rows, hidden]; dx [rows, hidden], dgamma [1, hidden]. FP32 arithmetic, one
/// rounding of each output.
/// Source: TransformerEngine include/transformer_engine/normalization.h (nvte_rmsnorm_bwd, nvte_rmsnorm_bwd_add),
/// common/normalization/rmsnorm.
struct RmsnormBwdParams : NormParams {
  bool add = false;

  template <class V>
  void describe(V& v) {
    NormParams::describe(v);
    v.boolean("add", "add", add, "the gradient of a residual branch is added to dx");
  }
};

/// The descriptor of `rmsnorm_bwd`.
[[nodiscard]] const Op& rmsnorm_bwd();

}  // namespace numcheck::op
