// Bounds and variances of the errors of one row of attention's gradients.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "core/dtype.hpp"
#include "model/error_model.hpp"
#include "op/attention_params.hpp"
#include "op/reference.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_bwd_rounding.hpp"
#include "tolerance/attention_products.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {

/// What all rows of an output (dq, dk, dv or dbias) have in common; letters as in attention_bwd_error.
struct GradientCommon {
  AttentionProducts products;
  double factor;        ///< |scale|, where the output has it
  double keep_scale;    ///< 1 / (1 - dropout)
  double width;         ///< channels of the other factor
  double steps;         ///< d_v + 4
  core::Dtype rounded;  ///< format of what is multiplied
  double unit;          ///< u_P
  double stored;        ///< the same, TF32's included
  double lost;          ///< half the spacing of subnormals of its format
  double lost_operand;  ///< half the spacing of subnormals of TF32, to which x is rounded; 0 for other formats
  double operand;       ///< variance of the rounding of an operand
  double largest;       ///< gradient of a score as it is multiplied
  SumError scores, values;
  double swing;         ///< by how much two scores may differ: twice the cap
  double equal_values;  ///< d_v^2 u^2 / 12, where products of do and v are all alike
  bool of_values;       ///< dv: no gradients of weights
  bool of_queries;      ///< dq
  bool ordered;         ///< inputs are structured or few numbers: terms of a sum are not independent
  bool drops;           ///< elements of dq and dk have kDropped

  GradientCommon(const model::ModelRequest& request, const op::AttentionParams& p, std::string_view port);

  /// What p w may be multiplied by after it underflows: a kernel may leave the scale and 1 / (1 - dropout) to the end.
  [[nodiscard]] double late_factor() const { return std::max(1.0, factor) * keep_scale; }
  [[nodiscard]] double bound() const { return std::max(scores.bound, values.bound) + products.scale_steps() * kUnit32; }
  /// u, enlarged where scales are multiplied: D has at least four roundings without them.
  [[nodiscard]] double arithmetic_unit() const { return (1 + products.scale_steps() / 4) * kUnit32; }
  /// Of two factors that are each rounded to TF32 by the same part throughout a sum.
  [[nodiscard]] double equal_operands() const;
  /// l, the variance that errors of scores give a log-sum-exp, from N2 and N1.
  [[nodiscard]] double statistic(double squares, double seconds) const;
  /// What errors of scores in lse add to dsoftmax_offset, of head `head`.
  [[nodiscard]] GradientError offset(const op::OutputValues& output, std::size_t head) const;
};

[[nodiscard]] GradientError sum_of(const GradientError& a, const GradientError& b);

/// Facts of one element besides its row's: kMean and the following.
struct GradientElement {
  double mean = 0, parts = 0, saturation = 0, dropped = 0, weight_ratio = 1, spread_ratio = 1, length_ratio = 1,
         scored = 0;

  GradientElement(const op::OutputValues& judged, std::size_t at);
};

/// One row: what its elements have in common.
class GradientRowErrors {
 public:
  GradientRowErrors(const GradientCommon& common, const GradientRounding& early, const GradientRow& facts);

  [[nodiscard]] bool is_empty() const { return terms_ == 0; }
  /// True if a correct kernel may overflow before it multiplies gradients of scores, or as it sums the products, or if such
  /// a gradient exceeds its scaled format: `rho` as below.
  [[nodiscard]] bool may_overflow(double rho) const;

  /// Means over the row's channels of W and rho^2.
  struct Means {
    double squares = 0, rho2 = 0;
  };
  /// Of an element of dq, dk or dv: its value, rho and W.
  [[nodiscard]] GradientError gradient(double y, double rho, double squares, const Means& means,
                                       const GradientElement& element) const;
  /// Of the largest |scale dt| of the whole output, dq: p (|w| a + b) is at most G for each pair, p |w| at most R.
  [[nodiscard]] GradientError largest(double of_all) const;
  /// The largest |scale dt| of the row itself, rounded up.
  [[nodiscard]] double largest_change() const;
  /// Of an element of dbias.
  [[nodiscard]] GradientError bias(double y, double rho, double squares, const GradientElement& element) const;

 private:
  [[nodiscard]] double fact(GradientFact which) const { return facts_[which]; }
  /// c (g G + u U)
  [[nodiscard]] double carried_error() const;
  [[nodiscard]] bool overflows() const;
  /// What errors of the slope of a cap add to an element's variance: they are largest for pairs with little weight, of
  /// whose x rho says nothing, but the mean of rho^2 over the row does.
  [[nodiscard]] double slope_errors(double rho, double mean_rho2) const;
  /// The same error, but with a variance so large that only the bound limits it if weights that are nearly 0 may come to
  /// count.
  [[nodiscard]] GradientError widened(GradientError e) const;
  /// l
  [[nodiscard]] double of_statistic() const;
  /// sqrt(3) standard deviations of what roundings of subnormal products leave of scale (dp - D).
  [[nodiscard]] double lost_by_difference() const;
  /// Variance of a weight's relative error, in an element's channel.
  [[nodiscard]] double weights(const GradientElement& element) const;

  const GradientCommon& common_;
  const GradientRounding& early_;
  GradientRow facts_;
  GradientRounding::Row stored_;
  double terms_;
  double growth_ = 1;        ///< c
  double growth2_ = 1;       ///< mean square of a weight over its own square
  double weights_ = 0;       ///< z
  double spread_ = 0;        ///< variance of dp - D per rho^2
  double equal_values_ = 0;  ///< variance of dp and D, per square, if their products are all alike
  double alike_spread_ = 0;  ///< the same per K^2 if it is the same in all pairs
  double flushed_ = 0;       ///< per pair, what FP32 may flush to zero
  bool overflows_ = false;
};

}  // namespace numcheck::tolerance
