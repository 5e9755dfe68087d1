// Error models of products that are less precise than their mode promises, as libraries compute them.
#pragma once

#include "model/error_model.hpp"

namespace numcheck::tolerance {

/// The model of the same product when each of `slices` partial sums is rounded to the output's format, and their
/// running sum again after each addition (cuBLASLt reduction schemes OUTPUT_TYPE and INPLACE, in any order). With u the
/// unit roundoff of the output's format and s_t the running sums:
///
///   B + (slices + 1) (u A + h/2),    V + 0.18 u^2 [ (S2 + y^2) + slices (S2/6 + y^2/3) ] + (slices + 1) h^2/12
///
/// where the first term is the slices' own rounding, the second sum_t s_t^2 for slices like random ones (the bridge
/// formula that the FP32 chain uses). Slices of operands that repeat may all have the same error: then V is such that an
/// element at its bound just meets the limit of G2, as in gemm_error_model. 0.18 u^2 is the variance of rounding a
/// log-uniform value to nearest. If other terms of y may cancel the sum, y^2 becomes y^2 + (cancelled A)^2. h is the distance of
/// the format's subnormal numbers, times `scale` = |alpha sA sB| if that is more than 1: slices may be multiplied by it before or
/// after they are rounded.
[[nodiscard]] model::ErrorModel with_output_reduction(model::ErrorModel model, int slices, double scale);

/// That model where such sums may overflow in the output's format, before they are multiplied by `scale` = |alpha sA sB|: NaN and
/// infinities prove nothing then in elements whose A reaches the largest number of the format. That is still wrong, but explained.
[[nodiscard]] model::ErrorModel with_overflowing_slices(model::ErrorModel model, double scale);

/// The model of the same product when the sum so far, P, is rounded to the output's format before the rest R is added
/// and the epilogue, whose slope is at most `steepness`, is applied:
///
///   B + steepness u A,    V + steepness^2 0.18 u^2 (S2 + y^2 + R^2)
///
/// because |P| <= A, and P^2 is about S2 + R^2 where the rest cancels P, otherwise about y^2. `rest_square` is the mean
/// of R^2. An overflow of the format in between is still wrong: no NaN and no infinity is excused. Measured with
/// cuBLASLt 13.1 on an H200: before C is added (beta 1, C and D share memory, k not split; P = alpha op(A) op(B)), and
/// before bias and activation (algorithms 23 and 24; P includes C).
///
/// P is on the grid of the format, so that adding an R that hardly varies errs alike in all elements whose sum has the same ulp:
///
///   slope + steepness u exp(-2 pi^2 s^2),    s = sd(R) / (2 u rms(y))
///
/// `rest_spread` is s; 0 if R is a constant, infinite if there is no R, which loses nothing. Where most of R hardly varies, and a few
/// numbers make its s large, that is too little:
///
///   slope + steepness 5/4 d,    d = |mean of (RN(R, ulp(y)) - R) / y|
///
/// `rest_drift` is d: what is left of R on the grid of y, where elements weigh about the same.
[[nodiscard]] model::ErrorModel with_rounded_part(model::ErrorModel model, double steepness, double rest_square,
                                                  double rest_spread, double rest_drift = 0);

/// Largest slope of gelu, at 1.4.
inline constexpr double kGeluSteepness = 1.13;

/// Largest error of the tanh in cuBLASLt's gelu. Measured with 13.1 on an H200: 7.43e-6, in every mode and kernel. The tanh
/// of cuDNN's attention has the same error, relative to tanh (9.14, H200: 5.8e-6 where one key has score 0.885 and the cap
/// is 30; log-sum-exps off by up to 7.5e-6 with caps 2 and 30). That is a 60th of what tanh.approx.f32 may err by, 2^-11.
inline constexpr double kTanhError = 8e-6;

/// The model of the same product when gelu(z) = z/2 (1 + t) uses a t = tanh(...) with an error of at most kTanhError:
///
///   B + kTanhError / 2 A,    V + (kTanhError / 2 A)^2 / 3
///
/// because |z| <= A.
[[nodiscard]] model::ErrorModel with_approximate_tanh(model::ErrorModel model);

}  // namespace numcheck::tolerance
