// A number with what FP32 arithmetic may lose of it by taking subnormal numbers for zero: an op's formula, evaluated on it
// instead of on double or Tracked, yields what such arithmetic may differ by, apart from its roundings.
//
//   y     the value in double
//   lost  |flushed - y| <= lost, wherever inputs, results, or both are flushed
//
// A result whose magnitude may be below 2^-126 may be flushed itself. An infinite `lost` allows any result: infinity times what may
// be zero, 1 / sqrt of what may be zero, an overflow that a flushed factor avoids. Where a formula knows that finite results
// cannot be off by more, but that zero may meet an overflow, `may_be_nan` says so.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {

/// What may be flushed: a computed number this small may have been subnormal before its last roundings.
inline constexpr double kMayFlush = kFlush * (1 + 0x1p-6);

struct Flushable {
  double y = 0;
  double lost = 0;
  bool may_be_nan = false;

  constexpr Flushable() = default;
  /// An input, or a constant.
  Flushable(double given)  // NOLINT(google-explicit-constructor): formulas mix both
      : y(given), lost(std::fabs(given) < kFlush ? std::fabs(given) : 0) {}
  constexpr Flushable(double value, double loss) : y(value), lost(loss) {}

  /// The same, and perhaps NaN.
  [[nodiscard]] constexpr Flushable or_nan(bool nan) const {
    Flushable x(y, lost);
    x.may_be_nan = may_be_nan || nan;
    return x;
  }
};

namespace detail {

/// |x| lost: nothing of infinity times something exact, anything of zero times anything.
inline double lost_in_product(double x, double lost) {
  return lost == 0 || std::isinf(lost) ? lost : std::fabs(x) * lost;
}

/// A result that is stored: off by `lost`, or zero.
inline Flushable stored(double y, double lost, bool may_be_nan = false) {
  const bool small = std::fabs(y) - lost < kMayFlush;
  return Flushable(y, small ? std::max(lost, std::fabs(y)) : lost).or_nan(may_be_nan);
}

}  // namespace detail

inline Flushable operator-(const Flushable& x) {
  return Flushable(-x.y, x.lost).or_nan(x.may_be_nan);
}
inline Flushable operator+(const Flushable& x, const Flushable& z) {
  return detail::stored(x.y + z.y, x.lost + z.lost, x.may_be_nan || z.may_be_nan);
}
inline Flushable operator-(const Flushable& x, const Flushable& z) {
  return x + -z;
}
inline Flushable operator*(const Flushable& x, const Flushable& z) {
  return detail::stored(x.y * z.y,
                        detail::lost_in_product(x.y, z.lost) + detail::lost_in_product(z.y, x.lost) +
                            detail::lost_in_product(x.lost, z.lost),
                        x.may_be_nan || z.may_be_nan);
}
inline Flushable& operator+=(Flushable& x, const Flushable& z) {
  return x = x + z;
}

inline double value_of(const Flushable& x) {
  return x.y;
}

inline bool indeterminate(const Flushable& x, const Flushable& z) {
  const auto may_be_zero = [](const Flushable& a) { return a.lost > 0 && std::fabs(a.y) <= a.lost; };
  return (std::isinf(x.y) && may_be_zero(z)) || (std::isinf(z.y) && may_be_zero(x));
}

inline Flushable reciprocal_root(const Flushable& x) {
  const double y = 1 / std::sqrt(x.y);
  const double low = x.y - x.lost;
  const double lost = x.lost == 0 ? 0 : low > 0 ? 1 / std::sqrt(low) - y : std::numeric_limits<double>::infinity();
  return detail::stored(y, lost, x.may_be_nan);
}

inline Flushable rounded_to(const Flushable& x, core::Dtype dtype) {
  const double lost = x.lost == 0 ? 0 : x.lost + core::ulp(std::fabs(x.y) + x.lost, dtype);
  return Flushable(core::round_to(x.y, dtype), lost).or_nan(x.may_be_nan);
}

/// In any order. Only partial sums with a term below 2^-102 can be subnormal: any others are multiples of 2^-125. Each such
/// term can so be lost once more, with a partial sum that is subnormal and no larger than all terms together.
template <>
class Sum<Flushable> {
 public:
  void add(const Flushable& term) {
    constexpr double kSmall = 0x1p-102;
    value_.add(term.y);
    lost_ += term.lost;
    magnitude_ += std::fabs(term.y) + term.lost;
    small_ += term.y != 0 && std::fabs(term.y) - term.lost < kSmall ? 1 : 0;
    may_be_nan_ = may_be_nan_ || term.may_be_nan;
  }
  [[nodiscard]] Flushable result() const {
    return detail::stored(value_.result(), lost_ + small_ * std::min(kFlush, magnitude_), may_be_nan_);
  }

 private:
  Sum<double> value_;
  double lost_ = 0, magnitude_ = 0, small_ = 0;
  bool may_be_nan_ = false;
};

}  // namespace numcheck::tolerance
