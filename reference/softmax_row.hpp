// One row of scaled, masked softmax, in double or with its error model. See op::SoftmaxFwdParams for the formula.
//
// The maximum m only shifts: numerator and denominator see the same rounded m, so its own error cancels and it counts
// as exact here. Exponentials are the approximate kind (2 + 1.173 |t - m| ulp, subnormals flushed), the reciprocal of
// the sum errs by 2 ulp: TransformerEngine compiles these kernels with fast math, and exact functions err by less.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "reference/softmax_formula.hpp"
#include "reference/softmax_interval.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {

/// A row and the rules that the parameters set for it.
struct SoftmaxRow {
  const double* x = nullptr;
  const double* mask = nullptr;  ///< 1 = masked; null: no mask of its own
  std::size_t columns = 0;       ///< up to the diagonal: all others are not part of the row, and zero
  double scale = 1;
  double masked_score = 0;      ///< replaces a masked score
  double hidden = 0;            ///< elements beyond the diagonal that hold masked_score
  bool masked_is_zero = false;  ///< a row whose maximum is masked_score is all zeros
};

namespace detail {

using tolerance::Tracked;

inline constexpr double kOverflow32 = 0x1.ffffffp+127;  ///< from here on FP32 rounds to infinity

inline double bound_of(double /*exact*/) {
  return 0;
}
inline double bound_of(const Tracked& x) {
  return x.b;
}

template <class Scalar>
Scalar score_of(const SoftmaxRow& row, std::size_t j) {
  if (row.mask != nullptr && row.mask[j] == 1) {
    return Scalar(row.masked_score);
  }
  const Scalar score = Scalar(row.x[j]) * Scalar(row.scale);
  const double y = tolerance::value_of(score);
  return std::fabs(y) >= kOverflow32 ? Scalar(std::copysign(std::numeric_limits<double>::infinity(), y)) : score;
}

inline double difference(double score, double maximum, double /*bound*/) {
  return score - maximum;
}
inline Tracked difference(const Tracked& score, double maximum, double bound) {
  return softmax_difference(score, maximum, bound);
}

inline double exponential_of(double d) {
  return std::exp(d);
}
/// The first-order term of exp is not enough where scores are so large that d itself is uncertain. exp(y) may be 0 there and
/// the factor exp(b) infinite.
inline Tracked exponential_of(const Tracked& d) {
  const double y = std::exp(d.y);
  return softmax_exponential(d, y, d.b < kSmallExponentError ? softmax_carried(d, y) : std::exp(d.y + d.b) - y);
}

inline double reciprocal(double sum) {
  return 1 / sum;
}
inline Tracked reciprocal(const Tracked& sum) {
  const Tracked r = Tracked(1) / sum;
  return tolerance::function_of(r, r.y, 1, 2);
}

inline double probability(double y) {
  return y;
}
/// Also where an infinite bound times 0 is NaN.
inline Tracked probability(const Tracked& product) {
  return std::isnan(product.y) ? tolerance::function_of(product, product.y, 1, 0, tolerance::kFlush)
                               : softmax_probability(product);
}

struct Maximum {
  double value = -std::numeric_limits<double>::infinity();
  double bound = 0;

  /// Ignores NaN, as fmaxf does.
  void raise(double y, double b) {
    if (y > value) {
      value = y;
      bound = b;
    }
  }
};

inline void narrow(const SoftmaxRow& /*row*/, const std::vector<double>& /*y*/) {}
/// Where scores are so large that the bounds carried through the formula say little.
inline void narrow(const SoftmaxRow& row, std::vector<Tracked>& y) {
  constexpr double kLarge = 0x1p-10;  // an error in an exponent
  std::vector<UncertainScore> scores;
  double largest = 0;
  for (std::size_t j = 0; j < row.columns; ++j) {
    const Tracked score = score_of<Tracked>(row, j);
    if (std::isnan(score.y) || score.y + score.b >= kOverflow32) {
      return;
    }
    scores.push_back({score.y, score.b});
    largest = std::isfinite(score.y) ? std::max(largest, score.b) : largest;
  }
  if (largest < kLarge) {
    return;
  }
  if (row.hidden > 0) {
    scores.push_back({row.masked_score, 0, row.hidden});
  }
  narrow_bounds(scores, std::span(y).first(row.columns));
}

}  // namespace detail

/// y[0, y.size()) = the row's softmax. False if a correct device may just as well return zeros: the largest score is
/// within its error of the value that marks a masked row.
template <class Scalar>
[[nodiscard]] bool softmax_row(const SoftmaxRow& row, std::vector<Scalar>& y) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  detail::Maximum scored;
  detail::Maximum maximum;
  for (std::size_t j = 0; j < row.columns; ++j) {
    y[j] = detail::score_of<Scalar>(row, j);
    const bool replaced = row.mask != nullptr && row.mask[j] == 1;
    (replaced ? maximum : scored).raise(tolerance::value_of(y[j]), detail::bound_of(y[j]));
  }
  if (row.hidden > 0) {
    maximum.raise(row.masked_score, 0);
  }
  maximum.raise(scored.value, scored.bound);
  const bool near = row.masked_is_zero && std::fabs(scored.value - row.masked_score) <= scored.bound;
  const bool masked = row.masked_is_zero && maximum.value == row.masked_score;
  const double m = masked ? 0 : maximum.value;  // such a row may have no finite score
  const auto term = [&](const Scalar& score) {
    const bool vanishes = tolerance::value_of(score) == -kInfinity && m > -kInfinity;
    return vanishes ? Scalar(0.0) : detail::exponential_of(detail::difference(score, m, maximum.bound));
  };
  tolerance::Sum<Scalar> sum;
  for (std::size_t j = 0; j < row.columns; ++j) {
    y[j] = term(y[j]);
    sum.add(y[j]);
  }
  const Scalar other = row.hidden > 0 ? term(Scalar(row.masked_score)) : Scalar(0.0);
  const double others = tolerance::value_of(other) == 0 ? 0 : row.hidden;
  for (auto left = static_cast<std::int64_t>(others); left > 0; --left) {
    sum.add(other);
  }
  const Scalar total = sum.result();
  const bool zero = masked && !std::isnan(tolerance::value_of(total));
  const Scalar factor = zero ? Scalar(0.0) : detail::reciprocal(total);
  for (std::size_t j = 0; j < y.size(); ++j) {
    y[j] = zero || j >= row.columns ? Scalar(0.0) : detail::probability(y[j] * factor);
  }
  if (!masked && std::isfinite(tolerance::value_of(total))) {
    detail::narrow(row, y);
  }
  return !near;
}

}  // namespace numcheck::reference
