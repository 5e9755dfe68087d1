// The error model of attention, forward.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "model/error_model.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// op::OutputValues::row_facts of output `o`, one number per query, over the keys that it sees. Here p_j are the weights
/// without the sink, sum p_j = 1, but for the largest weight.
enum class AttentionFact : std::size_t {
  score_magnitude,  ///< A = |scale| |q| sqrt(sum p_j |k_j|^2): bounds the rms of |scale| sum_c |q_c k_jc|
  score_second,  ///< S2 = L scale^2 sum_c q_c^2 mean_j k_jc^2 + s2 sum q_c^4 / (sum q_c^2)^2: keys that are weighed are
                 ///< longer along q, by which they got their scores, and L = max(1, sum p_j |k_j|^2 / mean |k_j|^2)
                 ///< times as long altogether
  score_square,  ///< s2 = sum p_j t_j^2, t_j = scale sum_c q_c k_jc: the score before a bias
  argument,      ///< E = sqrt(sum p_j (max(|t_j|, |s_j|) + m - s_j)^2), m the largest score or the sink; a capped t
                 ///< is at most the cap
  score_spread,  ///< s_s = sqrt(sum p_j s_j^2 - (sum p_j s_j)^2)
  query_spread,  ///< s_q = |scale| sqrt(sum_c var_i(q_ic) mean_j k_jc^2), by how much a key's scores differ among
                 ///< the queries of the head, infinite if there is one; with a cap times 1 - s2 / cap^2: what is
                 ///< saturated does not differ
  largest_weight,  ///< max exp(s_j - lse)
  equal_weight,  ///< with dropout, the sum of exp(s_j - lse) with s_j above max s_j - 2^-8; otherwise max exp(s_j - lse)
  keys,          ///< how many
  product_sum,   ///< A1 = sqrt(sum p_j (|scale| sum_c |q_c k_jc|)^2) in FP8 or if channels of keys are uneven; else A
  score_common,  ///< S = scale^2 sum_c q_c^2 (sum_j p_j k_jc)^2 of FP32 tensors; otherwise 0
  net_signs,     ///< N = |sum p_j sum_c sign(q_c k_jc)| in FP8; otherwise 0
  // For declared roundings only:
  inner_square,   ///< sum p_j s'_j^2, s' the score before a post_scale bias or alibi, but after a cap and other biases
  scored_square,  ///< S = sum p_j s_j^2
  largest_score,  ///< max |t_j|, |s_j|
  squared_weights,  ///< C = sum p_j^2 x_j^2 / sum p_j x_j^2, x = max(|t|, |s|), by which roundings of scores count
  scatter,  ///< G = S sum p_j^2 x_j^2 (1 - 2 S p_j + S^2 C') / (1 - S C') / sum p_j x_j^2, C' = sum p_j^2 and S what the
  ///< sink leaves to keys: what S^2 sum p_j^2 x_j^2 (v_j - o)^2 is in units of sigma^2 sum p_j x_j^2, if p says
  ///< nothing of v
  sink,        ///< |sink| exp(sink - lse)
  sink_share,  ///< r = 1 - S = exp(sink - lse), without declared roundings, too
  value_size,  ///< the root of the largest channel's sum of v_jc^2, over all keys of the head
  value_range,  ///< D = the largest channel's max v_jc - min v_jc, over all keys of the head, and 0 if weights of values may
                ///< add up to less than 1: with a sink or dropout
  least_weight,  ///< w, below which weights are subnormal in FP16 or FP8
  contest,  ///< how far errors in FP32 may move the largest scores, 0 if less than matters; negative if no other key may
            ///< come to weigh more than exp(-kSettledMargin)
  tf32_contest,  ///< the same in TF32
  count
};

/// So little that it does not count, unless values differ by 2^40: AttentionFact::contest.
inline constexpr double kSettledMargin = 40;

/// Bound B and deviation sqrt(V) of the error of every element of output `port` ("o" or "lse"), before it is rounded.
///
/// With rho^2 = sum p_j v_j^2 (in `magnitude`, as rho), W = sum p_j^2 v_j^2 + w^2 sum v_j^2 (its root in `deviation`; w =
/// 2^-14 exp(m - lse) is the weight below which FP16 numerators exp(s - m) are subnormal) and sigma^2 = rho^2 - o^2, the
/// spread of the values that a query weighs:
///
///   relative error of a weight's numerator   d = g_S A + u (5 E + 8)
///   o     B = (u_P + g_V + (n + 16) u) rho + d sigma           (Cauchy and Schwarz: sum p |d_j (v_j - o)| <= d sigma)
///             + (2^-112 + u_P for FP16) sqrt(n W) + l     (l = 2^-148, for TF32 its spacing of subnormals)
///         V = (0.18 u_P^2 + s_V) W + (s_S S2 + t_S s2 + (u E)^2 + 3 u^2) max p sigma^2
///             + (u^2 (n / 12 + 1) + t_V + (u_P a)^2 / 3 + t_S s2 r^2) o^2
///   lse   B = d + (n + 8) u + 2 u |lse|
///         V = (s_S S2 + t_S s2 + (u E)^2 + 3 u^2) max p + t_S s2 + u^2 (n / 12 + 1 + lse^2)
///
/// g is the bound and s, t the second moments (per S2 and per square of the sum) of sums of d products, index S, and of n
/// products, index V, in the arithmetic of the mode on the architecture (accumulation.hpp); operands that are rounded to
/// TF32 add 2 v to g and 0.36 v^2 to s. u_P is the unit roundoff of the format in which weights are multiplied with values:
/// the tensors', or TF32; 0 in an FP32 chain. Weights that differ by less than an ulp are rounded alike: a = exp(-4 pi^2
/// (s_s / 2 u_P)^2) (1 - max p), or 1 - max p where inputs have few different values, and no less than 2 s2 / cap^2 - 1 times
/// that where scores reach a cap; without the factor 1 - max p where a sink is larger than max p, as kernels may weigh relative to
/// it. Key blocks are rescaled one after another, which the 16 u cover. The bound holds for errors of scores that are alike; V takes them as independent.
/// Outputs as a whole are off by u_P a min(1 / (1 - max p), n): the key that weighs most may have the least value, and no
/// value is more than n times as large as their mean. Queries whose scores are the same (saturated by a cap, those of one
/// direction, or ALiBi's beside small products) have the same weights, rounded alike: a is at least exp(-4 pi^2 (s_q / 2 u_P)^2)
/// (1 - max p) here.
///
/// With dropout, a value is mask / (1 - dropout) v_j in all of this: rho^2 = sum p_j (mask_j / (1 - dropout) v_j)^2 and so
/// on, because the weights' own errors are those before it. 18 u replace 16 u, for the two multiplications, and the largest
/// weight is rounded to the same number in every query, as are those that are equal to it: with h the share of these
/// in those of all keys (without the sink) and c the relative rounding error of 1 / (1 - dropout), V + c^2 (h W + h^2 o^2).
/// From d = 1/4 on outputs are undetermined: a score that is off by so much may replace a dropped value, 0, by a kept one,
/// however alike the values are.
///
/// The rounding of q to TF32 is the same for all keys: what these have in common gives both V 0.18 v^2 S more, o's times r^2.
///
/// Terms that are all alike round alike. If d products are, that is d S2 <= 2 s2 (1 + 2^-20) but for a cap, t_S s2 in the second place has
/// (d u)^2 / 12 s2 + 4 v^2 / 3 s2 more: half of all additions of equal numbers are in the last binade and err by the same part of an
/// ulp, and the two factors are rounded to TF32 by the same part of them. V of o has (n u)^2 / 12 o^2 + v^2 / 3 o^2 more if n W <=
/// o^2 (1 + 2^-12). Numbers that differ by 2^-10, twice the unit roundoff of TF32, do not round alike any more, but W is a sum in
/// FP32, which for equal terms errs by n u. Structured inputs may be such numbers with different signs: the parts with v always count.
///
/// V has c_V (o^2 / rho)^2 more, c_V the part of sums of n products that share a sign, and t_S s2 is
/// (t_S + c_S s2 / A1^2) s2. Structured inputs (data::Order): t_S A1^2 instead of t_S s2, and t_V rho^2 instead of t_V o^2.
/// Constant inputs: judge_by_bound.
///
/// FP8 (op::has_scales) changes two things of a score. Its products lose at most the bits below 2^-F of the step's largest
/// number, which is M = sqrt(s2 + S2) in size (F = 13 on sm_89 and sm_90), but have no more than 6 fraction bits themselves:
/// only those lose any that are smaller than 2^(7 - F) M. These are the share f = d M / (d M + 2^(F - 7) (A1 - sqrt(S2))) of d
/// products, if sizes are spread evenly up to twice the mean of those that are not the largest. They are truncated towards zero by
/// h M, h = 0.72 2^-(F + 1), so that what all keys share is h f M N; sums that reach the next power of two lose a bit, h of a
/// score. And t_S, the random part, is that of each key alone, unless inputs are structured or few numbers. So
///
///   the last t_S s2 of either V is h^2 ((f M N)^2 + s2)        structured: M is A1 if that is larger, and t_S A1^2 more
///
/// Normal numbers, d = 64 to 256: this is 0.1 to 0.3 of what truncating every product would share, and V is still that of 13 bits:
/// in FP32 sums, sqrt(V) of lse would be 1e-6 instead of 1.5e-4 to 4e-4. Checked against emulated wgmma (d = 1 to 256, L = 16 and 32;
/// 1, 3 and 128 keys; normal, positive, with means, outlier channels, log-normal, log-uniform, low rank): rms of e / sqrt(V) at
/// most 1.2, median 0.2, for sums of equal products, which lose nothing, 0.
///
/// RN makes weights that spread over binades too small by 0.18 u_P^2 on average: below a power of two, numbers are rounded to it
/// from half as far as above it. (With spacing h_k above 2^k and g the density of p^2, sum h_k^2 (g(2^(k+1)) - g(2^k)) / 24 over
/// the integral, 4 u_P^2 3/4 / (24 ln 2) where log p is spread evenly.) All of o share this slope.
///
/// Structured values may all be rounded to TF32 by the same part, v at most: o has that as a slope.
///
/// exp(s - m) of the key with the largest score m is quantised to 448, the largest E4M3 number. Rounding m log2 e can make it
/// larger than 1, and it saturates, while the sum of weights has all of it: with x = 1 - exp(-2 u max |s|), g_V has x more, V
/// of o x^2 / 3 o^2, and outputs as a whole are off by x. It matters from scores of 10^5 on.
///
/// u_P is 2^-4, and w = 2^-6 / s_scale: a weight may be quantised after it is normalised, which is
/// the larger error, so that a has no factor 1 - max p, and max(1, w / max p) instead, where all weights are subnormal.
/// Scales are three roundings more of a score and of a sum. Rows are undetermined if errors of scores may change which key
/// weighs most (fp8_score_swing), or if products of scales leave FP32's range. `s_amax`, the largest p, is off by at most
///
///   B = max over queries of max p (exp(d / sqrt(max p) + B_lse) - 1),  V = that of (max p)^2 (V_d / max p + V_lse)
///
/// but, since p = exp(s - lse) and errors of s are in lse as well, with r = 1 - max p + u not more than what max p gets if
/// its score moves by d / sqrt(max p) and r by d (1 + d) sqrt(r) the other way, and max p r V_d exp(4 V_d), each with what
/// FP32 rounds, of which the largest count as LargestError says, here as of the elements of o for `o_amax`.
///
/// Checked against emulated kernels that quantise relative to the largest score so far and normalised, on sm_90
/// (tests/reference/attention_fp8_test.cpp): |e| / B below 1, rms of e / sqrt V at most 1.3, at least 0.4 for normal
/// inputs.
///
/// What ModelRequest::rounding allows besides. With d_r and z the bound and variance of a score (ScoreRounding: in root
/// mean squares over p), d_m the bound of the largest one, u the unit roundoff of the tensors' format, and e = exp(2 d_m):
///
///   o     B + e d_r sigma + u |sink| |o| + 2^-25 sqrt(n V2) for FP16 weights
///         V + z exp(z) (G sigma^2 + (1 - C) a_s / 0.18 (r o)^2) + (h r o)^2 + (u sink o)^2 / 3 + k 0.18 u^2 o^2
///           + (2^-25)^2 / 3 V2
///   lse   B + e d_r + u |sink|,    V + z exp(z) (C + (1 - C) a_s) + h^2 + (u sink)^2 / 3
///
/// With a cap, x the root mean square of s' / softcap: tanh x = x - x^3 / 3 of a stored x is rounded alike for all x less
/// than 1 / x^2 ulps apart, so lse is off by h = (1 - C) min(u, x^2 / 3) sqrt(s'^2) exp(-4 pi^2 (x^2 s_s / 2 u s')^2). V of lse has a_s / 0.18 instead of a_s: what is alike in all queries is not spread over an ulp. The o of
/// queries whose keys may be exchanged (ScoreRounding::may_exchange_keys) has the B and V of `contest`, below.
///
/// B and V count errors of scores to first order. Whatever the weights are, o is a mean of values: B is at most D + r_D
/// `value_size`, where r_D has what B counts relative to rho and u_P once more, and V at most the square of that. This is B
/// where errors of scores are large and another key may come to count (`contest`); B of lse has `contest` more there, and V is
/// (B / kappa)^2. Where they are large and none may, errors of weights are at most 2 n exp(-40) (|o| + sqrt(sum v^2)), but
/// where scores are stored in 16 bits, whose errors are larger.
///
/// Where 6 standard deviations of a score are more than 2, V of o is at least (B / kappa)^2: keys whose weights are 1 and 0
/// may be alike for a kernel.
///
/// V2 is the square of `value_size`. Where scores are stored, they have few values: two keys that are drawn by p have the same one with
/// the probability k = min(1, u sqrt(S) / (sqrt(pi) s_s)), and then weights with the same rounding error. Normalised
/// weights are rounded even if they are the largest, so a has no factor 1 - max p. Errors of scores that differ by less
/// than an ulp are alike: a_s = exp(-4 pi^2 (s_s / 2 u sqrt(S))^2), or 1 where inputs have few different values. Where
/// weights are stored before and after dropout, u_P, 0.18 u_P^2, k and 2^-25 count twice.
///
/// Checked against emulated unfused kernels (tests/reference/attention_rounding_test.cpp).
///
/// Source: derived here. Checked against emulated blocked kernels with an online softmax and FP32 sums
/// (tests/reference/attention_error_test.cpp): |e| / B at most 0.44, rms of e / sqrt V between 0.25 and 1.2.
void attention_error(const model::ModelRequest& request, const op::Values& values, std::string_view port,
                     std::span<float> bound, std::span<float> deviation);

/// The model of port "o" or "lse", or of "max_logit" (attention_max_model.hpp): attention_error for its elements. Errors of
/// one query's channels are mostly one error, and a factor that a row shares (its sum) is off by (n + 16) u at most.
[[nodiscard]] model::ErrorModel attention_error_model(const model::ModelRequest& request, std::string_view port);

}  // namespace numcheck::tolerance
