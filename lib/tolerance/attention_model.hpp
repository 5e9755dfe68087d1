// The error model of attention, forward.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "model/error_model.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// op::OutputValues::row_facts of output `o`, one number per query: with weights p_j = exp(s_j - lse), over the keys that
/// it sees,
enum class AttentionFact : std::size_t {
  score_magnitude,  ///< A = |scale| |q| sqrt(sum p_j |k_j|^2): bounds the rms of |scale| sum_c |q_c k_jc|
  score_second,    ///< S2 = scale^2 sum_c q_c^2 mean_j k_jc^2 + s2 sum q_c^4 / (sum q_c^2)^2: keys that are weighed are
                   ///< longer along q, by which they got their scores
  score_square,    ///< s2 = sum p_j s_j^2
  argument,        ///< E = sqrt(sum p_j (|s_j| + |s_j - max s|)^2)
  largest_weight,  ///< max p_j
  keys,            ///< how many
  count
};

/// Bound and predicted square of the error of every element of output `port` ("o" or "lse"), before it is rounded.
///
/// With rho^2 = sum p_j v_j^2 (in `magnitude`, as rho), W = sum p_j^2 v_j^2 (in `second_moment`) and
/// sigma^2 = rho^2 - o^2, the spread of the values that a query weighs:
///
///   relative error of a weight's numerator   d = g_S A + u (5 E + 8)
///   o     B = (u_P + g_V + (n + 16) u) rho + d sigma           (Cauchy and Schwarz: sum p |d_j (v_j - o)| <= d sigma)
///         V = (0.18 u_P^2 + s_V) W + (s_S S2 + t_S s2 + (u E)^2 + 3 u^2) max p sigma^2 + (u^2 n / 12 + t_V) o^2
///   lse   B = d + (n + 8) u + 2 u |lse|
///         V = (s_S S2 + t_S s2 + (u E)^2 + 3 u^2) max p + u^2 (n / 12 + 1 + lse^2)
///
/// g is the bound and s, t the second moments (per S2 and per square of the sum) of sums of d products, index S, and of n
/// products, index V, in the arithmetic of the mode on the architecture (accumulation.hpp); operands that are rounded to
/// TF32 add 2 v to g and 0.36 v^2 to s. u_P is the unit roundoff of the format in which weights are multiplied with
/// values: the tensors', or TF32; 0 in an FP32 chain. Key blocks are rescaled one after another, which the 16 u cover. The
/// bound holds for errors of scores that are alike; V takes them as independent.
/// Source: derived here. Checked against emulated blocked kernels with an online softmax and FP32 sums
/// (tests/reference/attention_error_test.cpp): |e| / B at most 0.44, rms of e / sqrt V between 0.25 and 1.2.
void attention_error(const model::ModelRequest& request, const op::Values& values, std::string_view port,
                     std::span<float> bound, std::span<float> variance);

/// The model of port "o" or "lse": attention_error for its elements. Errors of one query's channels are mostly one error,
/// and a factor that a row shares (its sum) is off by (n + 16) u at most.
[[nodiscard]] model::ErrorModel attention_error_model(const model::ModelRequest& request, std::string_view port);

}  // namespace numcheck::tolerance
