// The reference of op `gemm` (lib/op/gemm.hpp): its formula in double.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// Entry points of the reference of `gemm`:
///
///   Z[i,j] = (alpha sA sB) sum_t op(A)[i,t] op(B)[t,j] + beta C[i,j] + bias[j],   D = f(Z)
///
/// f is identity, relu, or gelu in its tanh form, evaluated without cancellation as z / (1 + exp(-2u)) with
/// u = sqrt(2/pi) (z + 0.044715 z^3). Inputs are looked up by port name: `a`, `b`, `c` (only if beta != 0) and `bias`
/// (only if the parameter says so), each dense and row-major in its stored shape. NaN and infinities propagate.
///
/// values() returns port `d` and, for an FP8 output, `d_amax` (one element, max |D| over elements that are not NaN; 0
/// if there are none). A sample does not determine a maximum: with one, `d_amax` is left out.
/// 64 outputs of every result are recomputed in twofold arithmetic; a disagreement beyond k 2^-53 A throws
/// core::InternalError, as do inputs that do not fit the parameters.
///
/// yardsticks() returns for `d` (and, without a sample, for `d_amax`, as the maximum over D)
///
///   magnitude      A  = (|alpha sA sB| sum |a b| + |beta C| + |bias|) g,   g = 1, or 1.13 >= max |gelu'| for gelu
///   second_moment  S2 = (alpha sA sB)^2 sum (a b)^2 h,                     h = 1, or 1.28 >= max gelu'^2
///
/// from two products in FP32 on operands scaled by powers of two, inflated by 1 + (k + 8) 2^-24 and rounded upwards, so
/// that they never fall short of the exact sums. Where the exponents of the operands span so wide a range that a term
/// could underflow or a sum overflow in FP32 (about 115 binades for both operands together), the products run in
/// double. What exceeds FP32's own range becomes infinity: then the bound is vacuous, never wrong.
///
/// exact_holds() is Freivalds' check (freivalds.hpp); with relu or gelu, which are not linear, it compares with all of
/// values().
///
/// The version names the formula and the BLAS with its instruction set.
[[nodiscard]] op::Reference gemm_reference();

}  // namespace numcheck::reference
