// The error model of attention, backward.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "model/error_model.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// op::OutputValues::row_facts of dq (one number per query of every head), dk and dv (per key of every head of keys) and
/// dbias (per query of a head). A row of gradients is a sum over pairs of queries and keys that see each other, in
/// dk and dv over the heads that share keys:
///
///   dq_i = scale sum_j p_ij w_ij k_j     dk_j = scale sum_i p_ij w_ij q_i     w = (dp - D) slope, slope that of the cap
///   dv_j = sum_i p_ij w_ij do_i          w = 1
///   dbias_ij = sum of p_ij w_ij over sequences, times scale if the bias comes before the scale; otherwise slope = 1
///
/// x is the other factor, k_j, q_i or do_i. With t = scale q k and s the score; all means and sums over p of squares are
/// weighted with |x|^2 as well, but for dbias, and mean_(p w)^2 takes |w| as 2^-12 slope (b + m) at least: where dp and D
/// cancel, the error of w does not become smaller.
enum class GradientFact : std::size_t {
  terms,             ///< N: pairs; of dbias sequences
  weight,            ///< R = sqrt(sum p w^2)
  products,          ///< G = sqrt(sum p (|w| a + slope b)^2): a = |scale| (1 + 2 / softcap) |q| |k| bounds a score's
                     ///< sum of magnitudes, and what its error does to the cap's slope; b = |do| |v| bounds that of dp
  arithmetic,        ///< U = sqrt(sum p (|w| e + (d_v + 4) slope m)^2): m = sum |do o|; e = 5 (|t| + |s| + |lse| +
                     ///< |s - lse|) + 8, with a cap 12 |dp - D| more in |w| e
  largest_product,   ///< max a, of weights that may be more than 0 in FP32
  largest_argument,  ///< max e, of the same
  largest_gradient,  ///< max |w|
  largest_change,    ///< max b + m, also of dropped pairs
  largest_term,      ///< max p |w|
  length,            ///< L = sqrt(sum |x|^2)
  score_second,      ///< S2 = mean_(p w)^2 of scale^2 sum (q k)^2, as |k|^2 times the mean over keys; keys with large
                     ///< scores are longer along q: t^2 sum q^4 / |q|^4 more
  score_square,      ///< T2 = mean_(p w)^2 of t^2
  argument_square,   ///< E2 = mean_(p w)^2 of 0.18 (2 t^2 + s^2 + 2 lse^2 + (s - lse)^2) and the cap's part
  gradient_second,   ///< F = sum (p slope)^2 sum (do v)^2 / sum p   (dv: 0); of dbias the three are divided by sum Z,
  gradient_square,   ///< H = sum (p slope D)^2 / sum p                     Z = (p slope (b + m))^2,
                     ///< where inputs are uneven with d_v^(1/2) (sum (do v)^2)^(1/2) for b, and F = 1 / d_v
  dot_variance,      ///< J = sum (p slope)^2 s_D / sum p, s_D = 0.18 d_v (sum (do o)^2 / 6 + D^2 / 3), without s_D in
                     ///< dq; (p (dp - D) tanh^2)^2 64 / 3 more, but for dbias: the slope of the cap is 1 - tanh^2
  shift,       ///< M = |sum RN(p |w|) - p |w|| / sum p |w| in the format of products (TF32 of FP32), the larger of
               ///< scaled and unscaled; of dv without dropout, and in FP8 (scaled), with its sign: weights that are all
               ///< alike are all rounded alike
  score_mean,  ///< T = sum p slope t / sum p, with a cap as in S2
  score_common,  ///< S = sum_c (q_c K_c / sum p)^2 of dq, K as below; of dk and dv k_c instead of q_c;
                 ///< with a cap, of dq and dk as in S2
  own_dot,       ///< P = sum_c do_c o_c = D of dq; of dk the mean of dp, sum_c v_c m_c with m = sum_i p do_i / sum p
  own_second,    ///< Q = sum_c (do_c o_c)^2, or (v_c m_c)^2
  own_dot_variance,  ///< s_D of the query; dq only
  own_statistic,     ///< its lse; dq only
  spacing,           ///< of subnormals among what is rounded, scale p w (dv: p): only in FP8, by the tensor's scale
  alike_scores,      ///< 1 if all scores q k of the row are the same to 2^-8, in root mean squares over p; otherwise 0
  alike_gradients,   ///< of dq and dk, the same of dp
  score_spread,      ///< how much the row's scores q k differ, relative to their root mean square
  gradient_spread,   ///< the same of dp
  equal_pairs,       ///< n = sum p |x|^2 / sum (p slope |x|)^2
  equal_weights,  ///< of dv where do is the same in all pairs: A, the root of sum (m^2 - m) (1 - part / 2)^2 over groups of m
                  ///< pairs whose p differ by less than an ulp of the sum so far; `part` is their part of the sum
  equal_values,  ///< 1 if the products of do and o (dk: of v and m) are alike: their relative deviation is at most d_v u
  // For declared roundings only; s' is the score before a post_scale bias or alibi, but after a cap and other biases:
  inner_square,      ///< mean_(p w)^2 of s'^2, but for dq of s'^2 (1 - 2 p): a part of an error is in lse, too
  scored_square,     ///< the same of s^2
  largest_score,     ///< max |t|, |s|, of weights that may be more than 0 in FP32
  largest_sink,      ///< max |sink| exp(sink - lse)
  saturation,        ///< sum (p (dp - D) tanh^2)^2 / sum p; of dbias the sum over the row's elements / sum Z
  free_share,        ///< 1 - sum p of dq: the part of the weights that a sink has
  statistic_square,  ///< N2 = sum p^2 max(t^2, s^2) of dq: what errors of scores do to lse; otherwise mean_(p w)^2 of N2
  // For errors of lse, likewise:
  statistic_second,    ///< N1 = sum p^2 max(S2, t^2, s^2), S2 of the pair: sums may cancel to a small score
  statistic_product,   ///< the largest max a of a query's dq
  statistic_argument,  ///< and max e
  common_shift,  ///< A = |sum RN(p w) - p w| / sum p, the larger of scaled and unscaled (of 8 bits, scaled): weights that are
                 ///< kept are all rounded alike, and so are those that are dropped, even if their sum is nearly 0
  count
};

/// True of facts that grow with the square of values and gradients, and that no constant outweighs where these are small:
/// row_facts have their roots, because FP32 does not hold the squares.
[[nodiscard]] constexpr bool is_kept_as_root(GradientFact which) {
  return which == GradientFact::gradient_second || which == GradientFact::gradient_square ||
         which == GradientFact::dot_variance || which == GradientFact::own_second ||
         which == GradientFact::own_dot_variance || which == GradientFact::saturation;
}

/// From here on a bound says nothing.
inline constexpr double kUndeterminedBound = 1e38;

/// An intermediate result as large as this may overflow in FP32, with a margin for factors such as log2 e.
inline constexpr double kMayOverflow = 1e37;

/// Further facts, one per element; empty where an output has none.
///
/// Of dq and dk K = scale sum_j p_ij slope_ij k_jc (dk: sum_i ... q_ic), by which an error is multiplied that dp - D has in
/// the whole row. It is a sum with signs, so no other fact stands for it: for keys of mean 0 it is smaller than rho by
/// sqrt(N).
inline constexpr std::size_t kMean = static_cast<std::size_t>(GradientFact::count);
/// Of dk and dv the root of the sum of squares of what each head adds, if heads share keys.
inline constexpr std::size_t kParts = kMean + 1;
/// Of dbias, if it goes through a cap, E = |scale| sqrt(sum (p (dp - D) tanh^2)^2) over sequences: the slope 1 - tanh^2 of
/// a saturated score is small, but its error is not.
inline constexpr std::size_t kSaturation = kParts + 1;
/// Of dq and dk with dropout the root of X = scale^2 sum (p slope kept x)^2 sum_c (do_c v_c)^2, which stands for rho^2 F:
/// the key with the largest weight may be dropped, and then rho says nothing of those whose dp has errors.
inline constexpr std::size_t kDropped = kSaturation + 1;
/// Of dq, dk and dv where inputs are uneven: by what z and the variance of dp - D are multiplied for an element's channel
/// (reference/attention_channel_errors.hpp). Of dbias always: z of the element itself.
inline constexpr std::size_t kWeightRatio = kDropped + 1;
inline constexpr std::size_t kSpreadRatio = kWeightRatio + 1;
inline constexpr std::size_t kLengthRatio = kSpreadRatio + 1;  ///< and |x|^2 / channels; not of dbias
/// Of dbias the root of X = scale^2 sum (p w)^2 ((1 - 2 p) max(s'^2, s^2) + N2) over sequences, what declared roundings of
/// scores do to the element: in most of its row's p w they may cancel with those of lse.
inline constexpr std::size_t kScored = kLengthRatio + 1;

/// op::OutputValues::row_facts of dsoftmax_offset, one number per head of what its queries add, x = exp(sink - lse) D:
enum class OffsetFact : std::size_t {
  sink,       ///< |sink|
  sum,        ///< sum |x|
  squares,    ///< sum x^2
  scores,     ///< sum x^2 N2
  seconds,    ///< sum x^2 N1
  largest,    ///< max |t|, |s| of all pairs
  products,   ///< sum |x| max a
  arguments,  ///< sum |x| max e
  count
};

[[nodiscard]] constexpr bool is_kept_as_root(OffsetFact which) {
  return which == OffsetFact::squares || which == OffsetFact::scores || which == OffsetFact::seconds;
}

/// A fact as row_facts have it, and back.
template <class Fact>
[[nodiscard]] float kept(Fact which, double x) {
  return static_cast<float>(is_kept_as_root(which) ? std::sqrt(x) : x);
}
template <class Fact>
[[nodiscard]] double read_fact(Fact which, const op::OutputValues& output, std::size_t index) {
  const auto x = static_cast<double>(output.row_facts[static_cast<std::size_t>(which)][index]);
  return is_kept_as_root(which) ? x * x : x;
}

/// Bound B and deviation sqrt(V) of the error of every element of output `port`, before it is rounded.
///
/// With rho^2 = scale^2 sum p x^2 (in `magnitude`, as rho) and W = scale^2 sum (p w x)^2 (its root in `deviation`):
///
///   delta = g (max a) + u (max e), c = exp(delta)                       a weight's relative error is below delta c
///   B = rho (r R + (1 + r) c (g (G + R max a) + u (U + R max e))) + eta L sqrt(N) + N eta_N    r = u_P + g_N + (N + 16) u
///                                                           (max a and max e: statistic_product and statistic_argument)
///   V = W (0.18 u_P^2 + 0.72 u^2 + s_N + z exp(2 z) + t_V) + rho^2 exp(2 z) (s_V F + t_V H + u^2 J)
///       + K^2 exp(2 z) (h Q + c_V P^2 + u^2 s_D) + y^2 (t_N + c_V + h S + (c_S + 0.36 u^2) T^2 + 0.36 (u lse)^2)
///       + k_N (y^2 / (rho R))^2 + max(0, max(M y, A K)^2 - 0.18 u_P^2 W) + underflow
///   z = s_S S2 + t_S T2 + u^2 (E2 + 3) + l                of a weight's relative error; dv has none of dp's terms
///
/// l = s_S N1 + (t_S + 0.72 u^2) N2: lse was computed from scores with errors of their own, or is again, and that of a score
/// with most of a query's weight is that of lse, too. R max a and R max e bound the same. dq has y^2 l instead, since the
/// whole query shares it.
///
/// B: Cauchy and Schwarz, sum p w |x| <= R sqrt(sum p x^2), or sqrt(N W) where FP32 does not hold R; likewise for the errors
/// of p (g a + u e), dp (g b) and D.
/// V: the first line has what is independent from pair to pair, the second what a row shares: the rounding of its q or
/// do (dk: k or v) to TF32, the shrinking of sums by truncation, D, lse, the constant log2 e.
///
/// g is the bound, s and t the second moments (per S2 and per square of the sum), c the square of the slope and k the
/// part for one sign of sums of d products (index S), of d_v (V) and of N, in the arithmetic of the mode on the
/// architecture (accumulation.hpp); g without an index is the larger of the first two. Of uneven inputs, z and the
/// variance of dp - D are multiplied by kWeightRatio and kSpreadRatio of the element, of dbias always. TF32 operands
/// add 2 v to g and 0.36 v^2 to s, and h = 0.18 v^2. u_P is the unit roundoff of the 16-bit format to which p and dS
/// are rounded before they are multiplied; 0 in an FP32 chain, and for TF32 except in the last line. eta = max(1,
/// |scale|) (half the spacing of subnormals of that format + 2^-126 (1 + max |w|)): what underflow takes, of p w, which may
/// be scaled before or after it, and of p, which w multiplies; its part in V is the smaller of W and (eta L)^2 / 3 /
/// channels. Sums may be scaled last as well: eta_N = 2^-126 max(1, |scale|). Where they are subnormal, each addition is rounded
/// to 2^-149: (N + 1) (2^-149 max(1, |scale|))^2 / 12 more in V. TF32 keeps 2^-136 of x: B has 2^-137 |scale| R sqrt(N)
/// more, and V a third of its square / N.
///
/// Pairs that are all alike have the same errors, which add up: y^2 z instead of W z if that is larger and scores are
/// alike, K^2 n (s_V F + t_V H + u^2 J) instead of rho^2 (...) likewise if dp is. A sum of n equal terms errs by n^2 u^2 /
/// 12 of its square: of N equal p w x (y^2 = N W), of d products if those of all queries and keys are alike
/// (products_are_alike), and of d_v if those of the row are (equal_values); by 4 v^2 / 3 more if their factors are rounded
/// to TF32. Half of all additions are in the last binade, whose numbers may be off by u of themselves. Of m equal terms
/// among others, as a mask leaves them where few queries see fewer keys than most, all may be: the sum is 1 - part / 2 of
/// itself when they are added last, on average, and errs by m^2 (1 - part / 2)^2 u^2 / 3 of its square, A^2 u^2 / 3 of all
/// groups of dv without what independent terms have.
///
/// Where inputs are structured (data::Order) or small integers, a sum's terms of one sign follow each other: rho R instead
/// of y in the last three lines but for k_N, and 0.18 (u_P rho R)^2 instead of (M y)^2; z has t_S (max a)^2 more, underflow
/// the smaller of (rho R)^2 and (eta L)^2 N / 3, and F s_V has 2 t_V G^2. Such inputs may all be rounded to TF32 by the same part:
/// t has 4 v^2 / 3 more, and V v^2 / 3 y^2. Constant inputs: judge_by_bound, and likewise
/// rows in which six standard deviations of a score, sqrt(s_S + t_S) max a, exceed 2 and scores may differ by more (twice
/// the cap): weights that are nearly 0 may come to count, of which no mean over p knows.
///
/// With a cap, (c_S + 0.36 u^2) T^2 has 4 u^2 s'^2 more, s' the row's largest capped score: a tanh may be off by an ulp
/// in the same direction for all scores of one size. Measured: CUDA's, for scores near 0.35 and 0.6 of the cap. And
/// the slope's part of rho^2 u^2 J, in dq and dk, has (rho^2 + its mean over the row) / 2 instead of rho^2 if that is larger:
/// the slope errs most where weights are small, and the pair with most of the weight, which rho is about, may be dropped.
///
/// FP8 (op::has_scales): u_P is that of E4M3 for dv, and of the gradients' format for dq and dk; eta is half of `spacing`,
/// with no factor, because scale p w is what is rounded; scales are three roundings more. dp_amax, the largest |scale p w|,
/// is off by at most |scale| c (g G + u U) of a query, of which the largest count as LargestError says. What an output may be
/// off by as a whole: attention_bwd_slope.hpp.
///
/// dbias is summed over sequences in FP32 and rounded only then. With rho^2 = sum Z and W = sum (p w)^2 over sequences:
///
///   B = sqrt(N) (sqrt(W) c (2 g max a + u (2 max e + N + 4)) + rho c (g + (d_v + 4) u) + 8 u c E) + 2^-126 N (1 + max |w|)
///   V = W (z exp(2 z) + c_S T2 + t_V + (N / 6 + 4) 0.18 u^2) + rho^2 (s_V F + (t_V + c_V) H + u^2 J) + 0.06 N (u y)^2
///       + 64 / 3 (u E)^2
///
/// dsoftmax_offset is FP32 throughout: its reference has B and V itself, to which errors of scores in lse are added, those
/// of OffsetFact::products, OffsetFact::arguments and l times OffsetFact::scores.
///
/// ModelRequest::rounding allows more: see GradientRounding (attention_bwd_rounding.hpp).
///
/// With dropout, kept = mask / (1 - dropout): w = (kept dp - D) slope, and w = kept in dv; b has kept |v|, rho^2 F is X
/// (kDropped; in dbias F has kept |v|), and the two multiplications add 2 u to g and 0.72 u^2 to t of index V; 4 in d_v + 4
/// is 8, since libraries divide D by what they multiply with later. M is that of kept weights before and after they are
/// divided by 1 - dropout. That division may be the last step of all, as FlashAttention has it: what underflow takes of p w
/// and of sums is divided as well, so eta is max(1, |scale|) ((half the spacing + 2^-126) / (1 - dropout) + 2^-126 max |w|),
/// and eta_N and the 1 of dbias are divided by 1 - dropout.
///
/// An error whose bound is not finite is undetermined: a weight whose score is off by a few units could be anything. So is
/// a row in which b + m, the sum of products or a gradient of a score (p |w| and its error, scaled or not, in the format in
/// which it is multiplied, unless that has a scale and hence saturates) may overflow. Inputs that are not finite:
/// reference/attention_gradient_fates.hpp.
///
/// Assumed: o is that of the inputs, but for the errors of a forward pass; S, dp and D are not rounded below
/// FP32 (TF32 for its operands); sums of dq over keys, of dk and dv over queries and heads are FP32, in any order
/// (atomics).
///
/// Source: derived here. Checked against emulated kernels (tests/reference/attention_bwd_error_test.cpp): tensor cores
/// of sm_90 and FP32 chains; no mask and causal, caps, biases, sinks, shared heads; normal, large and equal scores,
/// values of one sign, do along o. |e| / B at most 0.89; rms of e / sqrt V of dq, dk and dv 0.44 to 1.03 (bf16, fp16),
/// 0.59 to 1.02 (tf32), 0.27 to 1.07 (fp32). Lower where admissible kernels differ: 0.1 for gradients that are
/// subnormal in FP16, since dS may be scaled before or after it is rounded; 0.2 for inputs all of one sign in FP16,
/// since not all sums are truncated; nearly 0 where a cap is saturated, since tanh may be off by an ulp or not. dbias
/// at most 1.03.
void attention_bwd_error(const model::ModelRequest& request, const op::Values& values, std::string_view port,
                         std::span<float> bound, std::span<float> deviation);

/// The model of port "dq", "dk", "dv", "dbias" or "dsoftmax_offset": attention_bwd_error for its elements; of "o" and
/// "lse", where they are outputs, that of the forward pass, attention_error_model. Errors of one row's channels are mostly
/// one error.
[[nodiscard]] model::ErrorModel attention_bwd_error_model(const model::ModelRequest& request, std::string_view port);

}  // namespace numcheck::tolerance
