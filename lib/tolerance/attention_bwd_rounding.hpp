// What declared roundings to 16 bits add to the errors of attention's gradients.
#pragma once

#include <cstddef>
#include <string_view>

#include "model/error_model.hpp"
#include "op/reference.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_rounding.hpp"

namespace numcheck::tolerance {

/// Bound and predicted square of an error.
struct GradientError {
  double bound = 0;
  double variance = 0;
};

/// The facts of one row of dq, dk, dv or dbias.
class GradientRow {
 public:
  GradientRow(const op::OutputValues& output, std::size_t index) : output_(output), index_(index) {}
  [[nodiscard]] double operator[](GradientFact which) const { return read_fact(which, output_, index_); }

 private:
  const op::OutputValues& output_;
  std::size_t index_;
};

/// The roundings of ModelRequest::rounding that matter to one output. With u the unit roundoff of the tensors' format, z and
/// d_m the variance and the largest bound of a score (ScoreRounding), which also reach the recomputed lse, n the roundings
/// of p w besides that of an operand (weights 1; gradients of scores 1, 3 more for a cap, 1 more for a pre_scale bias), n_c
/// the errors of the cap's tanh y in units of u y (3, with a pre_scale bias 5), e that of an approximate tanh, S the largest
/// |sink| exp(sink - lse), L = 2 d_m + u S, and other letters as in attention_bwd_error:
///
///   B + (1 + r) rho ((exp(L) - 1 + n u) R + c exp(L) (u G + (2 n_c u (1 + max |s| / softcap) + 2 e) U / 12))
///   V + W (z exp(2 z) + (n + 1) 0.18 u^2 + (u S)^2 / 3) + rho^2 (0.18 u^2 H + (0.72 n_c u^2 + 4 e^2 / 3) X)
///     + y^2 ((u S)^2 / 3 + N2 in dq + (a u)^2 / 4) + (n_d u K P)^2 / 4
///
/// of which the last two are weights, and dp, that are next to the same in the whole row, and so rounded alike, perhaps in all
/// rows. a is the share of a weight's roundings that is so, times their number: exp(-(2 pi r)^2) for scores of size r in ulps
/// of the weights, but 1 where all products are alike or few numbers, and where tails are heavy (has_heavy_tails). n_d is the
/// number of dp's roundings if dp are alike or few numbers, or, with dropout, inputs have one sign; otherwise 0. Where a step
/// of a gradient may overflow, nothing is known of the row. W counts
///
/// with the mean of W over the row's channels, if that is larger, before z exp(2 z) in dk and dv: where one pair has
/// most of a row's weight and is next to exact, because lse has the error of its score, z is that of the others, which
/// count for more in a channel that is small in that pair. And u G, 0.18 u^2 H and the 1 of n + 1 are the rounding of dp
/// = w + D, and X is `saturation`. Underflow grows by that of each rounding. dbias has the same per element, with E
/// instead of X, with kSpreadRatio times H, and with the z of kScored where that is larger. Sums that are rounded on the way:
///
///   heads that share keys   B + u sum |part|,  V + 0.18 u^2 sum part^2
///   scaled parts of dbias   B + u sqrt(N W),   V + 0.18 u^2 W; each part underflows at 1 / |scale| times the usual
///   sequences in dbias      B + N u sqrt(N W), V + 0.18 u^2 (W / 2 + N (W / 6 + y^2 / 3)), the bridge of running sums
///
/// where an element of dbias is undetermined if parts may overflow in that format: infinities of both signs add up to NaN.
///
/// dsoftmax_offset, x_i = exp(sink - lse_i) D_i:  B + (exp(L) - 1) sum |x|,  V + (u sink)^2 / 3 (y^2 + sum x^2) + z of
/// sum x_i^2 N2_i, with what scores share (alike_scores) beside (u sink)^2 / 3.
/// Where weights are stored again after dropout, and dp before it, n grows by 1 in dv, and the rounding of dp = w + D, in
/// u G, 0.18 u^2 H and n + 1, counts twice. An element of dbias has W + rho^2 H twice for that, since w and D of a kept
/// weight mostly have the same sign, and z of scores that lse does not have.
/// Source: derived here. Checked against emulated unfused kernels (tests/reference/attention_rounding_test.cpp).
class GradientRounding {
 public:
  GradientRounding(const model::ModelRequest& request, const op::AttentionParams& p, std::string_view port,
                   const op::OutputValues& output);

  [[nodiscard]] const model::AttentionRounding& what() const noexcept { return what_; }

  /// What a row's elements have in common.
  struct Row {
    double relative = 0;   ///< (exp(L) - 1 + n u)
    double steep = 1;      ///< exp(L)
    double bound = 0;      ///< per rho
    double scores = 0;     ///< variance of a weight by its score's roundings, per W
    double weights = 0;    ///< other variance of a weight, per W
    double spread = 0;     ///< per rho^2
    double slopes = 0;     ///< of that, what errors of the cap's slope do
    double common = 0;     ///< per y^2
    double dots = 0;       ///< per K^2
    double tanh = 0;       ///< bound of the error of a slope, 1 - y^2
    double lost = 0;       ///< per pair, what underflow takes
    bool unknown = false;  ///< errors of scores say nothing of weights
  };
  /// `factor` is |scale| where the output has it, `growth` c.
  [[nodiscard]] Row row(const GradientRow& facts, double factor, double growth) const;
  /// An element of dbias. The ratios are kWeightRatio and kSpreadRatio, or 1 if those are less: errors of weights differ
  /// like z, those of dp like its variance.
  struct BiasElement {
    double y, rho, squares, saturation, scored, weight_ratio, spread_ratio;
  };
  [[nodiscard]] GradientError bias(const Row& row, const GradientRow& facts, const BiasElement& element) const;
  /// Of heads that share keys; `parts` is the root of the sum of squares of what they add.
  [[nodiscard]] GradientError parts(const GradientRow& facts, double rho, double parts) const;
  /// Of dsoftmax_offset, of head `head`; `alike` is the largest alike_scores of its queries.
  [[nodiscard]] GradientError offset(const op::OutputValues& output, std::size_t head, double alike) const;
  /// The variance that weights of a row have in common, because scores that are rounded to the same number have the same errors
  /// from there on: of scores that differ by r of their size, u / (sqrt(pi) r) are. What all keys of a query share is in their
  /// log-sum-exp, but not beside a sink, whose score has no such error: the part free_share of it is left in dq. Of dk and dv
  /// without a sink that is the three roundings of a cap, beside one all n_i of them, and that of a tanh x near x.
  [[nodiscard]] double alike_scores(const GradientRow& facts) const;
  /// By how much an output may be too large or too small as a whole: the largest u S + z of a row; infinite for
  /// dsoftmax_offset, where each head has one error.
  [[nodiscard]] double shared_slope(const op::OutputValues& output) const;
  /// By how much the roundings of weights that are alike change all of a row: a u.
  [[nodiscard]] double alike_weights(const GradientRow& facts) const;
  /// The same of dp, as a part of itself: also what roundings that are not alike have in common.
  [[nodiscard]] double alike_changes(const GradientRow& facts) const;
  /// What underflow takes of a pair; `factor` as above.
  [[nodiscard]] double lost(const GradientRow& facts, double factor) const;
  /// Standard deviation of what all rows of a head of dk or dv may have in common, as a part of themselves: every query's own
  /// lse is recomputed from rounded scores. Queries are independent, but of uneven ones a single one may count.
  [[nodiscard]] double alike_statistics(const GradientRow& facts) const;

 private:
  [[nodiscard]] double score_variance(const GradientRow& facts) const;
  /// Of the slope of a cap.
  [[nodiscard]] double slope_variance() const;
  /// True if rounded parts of an element of dbias, `magnitudes` at most in sum, may be infinite and the element need not be,
  /// or may be of both signs.
  [[nodiscard]] bool sum_may_overflow(const BiasElement& element, double magnitudes) const;

  model::AttentionRounding what_;
  ScoreRounding scores_;
  double unit_;          ///< u
  double steps_;         ///< n
  double slope_steps_;   ///< n_c
  double weight_steps_;  ///< of these, those of weights
  double dp_steps_;      ///< roundings of dp
  double kept_;          ///< 1 / (1 - dropout) if dropped weights are stored, otherwise 0
  double subnormal_;     ///< half the spacing of subnormals
  double largest_;       ///< finite number of the format
  double descale_;       ///< 1 / |scale|
  double cap_;           ///< 1 / softcap, or 0
  bool has_sink_;
  double shared_steps_;  ///< roundings of a score that a row's weights may share
  double sharing_;       ///< heads per head of keys
  double largest_step_;  ///< by what a gradient is multiplied before it is divided again
  bool of_queries_, of_dropped_bias_, of_offset_;
  bool keeps_alike_;  ///< dp of kept weights may be next to the same, though with those that are dropped they are not
  bool is_uneven_;
  bool weights_alike_;        ///< most weights may be next to the same, whatever the size of scores
  double largest_score_ = 0;  ///< of the whole output: lse is recomputed from all of a query's scores
};

}  // namespace numcheck::tolerance
