// How the values of a distribution relate to each other, which decides how their rounding errors add up.
#pragma once

#include "core/dtype.hpp"
#include "data/distribution_params.hpp"

namespace numcheck::data {

/// How the elements of an operand relate to each other: rounding errors of operands that repeat add up instead of
/// cancelling.
enum class Order {
  random,
  constant,  ///< every element is +-max
  signed_runs,  ///< signs come in runs along the reduction: partial sums may be far larger than the sum; magnitudes are random
  structured,  ///< anything else that is ordered along the reduction, or rounds alike
};

struct Pattern {
  Order order = Order::random;
  double coherence = 0;     ///< |mean| / mean of |x|: 1 if all elements share a sign, 0 if the signs cancel
  bool few_values = false;  ///< small integers: sums of products have few different values, too
};

/// Patterns of distributions whose values are rounded to `format`: an interval that holds few of its numbers is
/// structured.
[[nodiscard]] Pattern uniform_pattern(const UniformParams& params, core::Dtype format);
[[nodiscard]] Pattern large_mean_pattern(const LargeMeanParams& params, core::Dtype format);
[[nodiscard]] Pattern log_uniform_pattern(const LogUniformParams& params, core::Dtype format);
/// Coherence and order of the last row, which has the largest mean of those that follow the sink. Structured as well if
/// products of outliers are so large that the others are lost in their sum, or if all rows come from one or two.
[[nodiscard]] Pattern activation_pattern(const ActivationParams& params, core::Dtype format);

}  // namespace numcheck::data
