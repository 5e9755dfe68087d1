// The error model of attention's largest scores.
#pragma once

#include <cstddef>
#include <span>

#include "model/error_model.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// op::OutputValues::row_facts of output `max_logit`, one number per query, over the keys that it sees. Key m has the
/// largest score s; t = scale sum_c q_c k_mc.
enum class MaxLogitFact : std::size_t {
  products,   ///< |scale| |q| max |k_j|: bounds every |scale| sum_c |q_c k_jc|
  largest,    ///< max |t_j|, |s_j|
  magnitude,  ///< |scale| sum_c |q_c k_mc|
  second,     ///< root of S2 = scale^2 sum_c (q_c k_mc)^2, whose square FP32 may not hold
  product,    ///< |t|
  score,      ///< |s|
  capped,     ///< |argument of the cap|: t, with a pre_scale bias
  rivals,     ///< keys whose scores are so close to the largest that errors may exchange them, itself included
  upset,  ///< max_j (2^-23 |scale| |q| |k_j| / sqrt(d) - (s - s_j) / 6), at least 0, see below; without the root where a
          ///< channel of keys is much longer than others
  tf32_upset,  ///< the same with 0.6 2^-11, the deviation that operands have which are rounded to TF32
  bf16_upset,  ///< max_j (2.5 2^-9 max(|s'_j|, |s_j|) - (s - s_j) / 6), at least 0: of scores stored in BF16 (ScoreRounding);
               ///< with a pre_scale bias, |t_j| counts as well
  fp16_upset,  ///< the same with 2.5 2^-12
  count
};

/// Bound and predicted square of the error of every element of output `max_logit`: the largest of scores with errors is off
/// by the largest error of a score at most. With sums as in attention_error and ScoreRounding,
///
///   B = g_S products + 16 u largest + d_m + what subnormal operands and sums lose
///   v = s_S S2 + (t_S + k_S min(1, t^2 / magnitude^2)) t^2
///   V = (slope^2 v + 2 u^2 (t^2 + s^2) + z) (1 + 2 log rivals)
///
/// with the variance of that loss added, and at least the square of `upset`, TF32's where it multiplies, and of that of the
/// format in which scores are declared to be stored: a key much longer than m whose products cancel, or a score that was larger
/// before its bias, has larger errors than m, and may come to be the largest (LargestError). With a cap, t^2 in V is that of the larger of min(|t|, cap) and slope |t|, and
/// slope = 1 - tanh^2 is that of the cap three deviations sqrt(v) closer to 0, where errors may have brought its argument:
/// those of huge products are larger than what is left to the cap. slope^2 v is at most (2 cap)^2. Structured inputs
/// (data::Order): v has t_S magnitude^2 instead of t_S t^2 if that is larger, and 4 / 3 t^2 times the square of TF32's unit
/// roundoff more: q and k may all be rounded to it by the same part. The last factor bounds the mean square of the largest
/// of so many errors; rounding, which keeps the order, has no rivals. The 16 u cover the scale, cap and bias, and the conversions of kernels that
/// compute exp as 2^x. A query that sees nothing has -infinity.
///
/// Source: derived here. Checked against emulated kernels (tests/reference/attention_error_test.cpp).
void max_logit_error(const model::ModelRequest& request, const op::Values& values, std::span<float> bound,
                     std::span<float> deviation);

/// The model of port "max_logit". Scores may be truncated, all by the same part.
[[nodiscard]] model::ErrorModel max_logit_error_model(const model::ModelRequest& request);

}  // namespace numcheck::tolerance
