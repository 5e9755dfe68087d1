// What FP32's range does to the formulas of the normalisations: sums that may overflow, and results that do.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tolerance/flushable.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {

/// The bound of an error; plain values have none.
inline double bound_of(double /*x*/) {
  return 0;
}
inline double bound_of(const tolerance::Tracked& x) {
  return x.b;
}
inline double bound_of(const tolerance::Flushable& x) {
  return x.lost;
}

/// Sum of the magnitudes of terms, to see whether FP32 sums may overflow.
class Reach {
 public:
  void add(double magnitude) {
    has_nan_ = has_nan_ || std::isnan(magnitude);
    has_infinity_ = has_infinity_ || std::isinf(magnitude);
    finite_ += std::isfinite(magnitude) ? magnitude : 0;
  }
  /// An intermediate result of a term, which must stay within FP32's range by itself.
  void pass(double magnitude) { beyond_ = beyond_ || (std::isfinite(magnitude) && magnitude > kLargestSum); }
  /// True if infinities, and no NaN, are among the terms: what differences and products of infinities become then
  /// depends on how the formula is written.
  [[nodiscard]] bool infinite() const { return has_infinity_ && !has_nan_; }
  /// True if the sum times `factor` may leave FP32's range although no term is NaN: what it becomes then depends on the
  /// order. A NaN stays NaN in any order.
  [[nodiscard]] bool may_overflow(double factor = 1) const {
    return !has_nan_ && (beyond_ || finite_ * factor > kLargestSum);
  }

 private:
  static constexpr double kLargestSum = 0x1p125;  ///< leaves room for the terms' own errors

  double finite_ = 0;
  bool has_nan_ = false;
  bool has_infinity_ = false;
  bool beyond_ = false;
};

/// A result of FP32 arithmetic: infinite where it overflows, whatever format it is then stored in. Within its error of
/// FP32's largest number, it is not checked.
inline double overflowed(double y) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return std::fabs(y) > kLargest ? std::copysign(std::numeric_limits<double>::infinity(), y) : y;
}
inline tolerance::Tracked overflowed(const tolerance::Tracked& x) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double magnitude = std::fabs(x.y);
  if (std::isfinite(magnitude) && magnitude + x.b > kLargest && magnitude - x.b <= kLargest) {
    return {0, kNan, kNan};
  }
  return std::isfinite(magnitude) && magnitude > kLargest ? tolerance::Tracked(overflowed(x.y)) : x;
}
inline tolerance::Flushable overflowed(const tolerance::Flushable& x) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const double y = overflowed(x.y);
  return y == x.y || std::isnan(y)
             ? x
             : tolerance::Flushable(y, std::fabs(x.y) - x.lost > kLargest ? 0 : y).or_nan(x.may_be_nan);
}

/// What the product of three factors loses where that of two, which a kernel may form first, is below `least`.
inline double lost_in_other_orders(double a, double b, double c, double least, double eta) {
  const auto lost = [&](double product, double third) {
    const double magnitude = std::fabs(product);
    return magnitude > 0 && magnitude < least ? std::min(magnitude, eta) * std::fabs(third) : 0;
  };
  return lost(a * b, c) + lost(a * c, b) + lost(b * c, a);
}

/// x = a b c, or a sum with that term, whichever two of the factors are multiplied first.
inline double in_any_order(double x, double /*a*/, double /*b*/, double /*c*/) {
  return x;
}
inline tolerance::Tracked in_any_order(const tolerance::Tracked& x, double a, double b, double c) {
  const double lost = lost_in_other_orders(a, b, c, tolerance::kFlush, tolerance::kUnderflow);
  return lost > 0 && std::isfinite(lost) ? tolerance::Tracked(x.y, x.b + lost, x.v + lost * lost) : x;
}
inline tolerance::Flushable in_any_order(const tolerance::Flushable& x, double a, double b, double c) {
  return tolerance::detail::stored(
      x.y, x.lost + lost_in_other_orders(a, b, c, tolerance::kMayFlush, tolerance::kMayFlush), x.may_be_nan);
}

/// A result that is not checked. Plain values cannot express that.
inline double unchecked(double x) {
  return x;
}
inline tolerance::Tracked unchecked(const tolerance::Tracked& /*x*/) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  return {0, kNan, kNan};
}
inline tolerance::Flushable unchecked(const tolerance::Flushable& x) {
  return {x.y, std::numeric_limits<double>::infinity()};
}

/// a b + c in FP32, rounded once or twice: which of the two is up to the compiler. Not checked where that decides what
/// becomes of an overflow, nor where an infinity is multiplied by what may be zero.
template <class Scalar>
Scalar multiplied_and_added(const Scalar& a, const Scalar& b, const Scalar& c) {
  const auto same = [](double x, double z) {
    return std::isnan(x) ? std::isnan(z) : x == z || (std::isfinite(x) && std::isfinite(z));
  };
  const Scalar product = a * b;
  const Scalar stored = overflowed(product);
  const Scalar twice = overflowed(stored + c);
  const bool at_the_limit = std::isfinite(tolerance::value_of(product)) && std::isnan(bound_of(stored));
  const bool certain = same(tolerance::value_of(twice), tolerance::value_of(overflowed(product + c))) &&
                       !(at_the_limit && std::isinf(tolerance::value_of(c))) && !tolerance::indeterminate(a, b);
  return certain ? twice : unchecked(twice);
}

/// What FP32 sums over a row may do.
struct RowRange {
  bool finite = true;  ///< all elements are
  bool sum_may_overflow = false;
  bool squares_may_overflow = false;
};

/// `centre`: what is subtracted before squaring, with an error of at most `error`.
[[nodiscard]] RowRange range_of(std::span<const double> x, double centre, double error);

}  // namespace numcheck::reference
