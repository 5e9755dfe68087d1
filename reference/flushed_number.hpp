// Numbers of FP32 arithmetic that takes subnormal numbers for zero, without its roundings.
#pragma once

#include <array>
#include <cmath>
#include <limits>

#include "tolerance/tracked.hpp"

namespace numcheck::reference {

struct FlushedNumber {
  double y = 0;
  bool lost = false;         ///< something was flushed on the way that was not zero
  bool nan_of_loss = false;  ///< NaN, because what was flushed was then multiplied by infinity

  constexpr FlushedNumber() = default;
  FlushedNumber(double given)
      : FlushedNumber(given, false, false) {}  // NOLINT(google-explicit-constructor): formulas mix both
  FlushedNumber(double exact, bool lost_before, bool nan_before)
      : y(exact), lost(lost_before), nan_of_loss(nan_before) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    if (std::fabs(y) < tolerance::kFlush && y != 0) {
      y = std::copysign(0.0, y);
      lost = true;
    } else if (std::fabs(y) > kLargest) {
      y = std::copysign(std::numeric_limits<double>::infinity(), y);
    }
  }
};

inline FlushedNumber operator-(const FlushedNumber& x) {
  return {-x.y, x.lost, x.nan_of_loss};
}
inline FlushedNumber operator+(const FlushedNumber& x, const FlushedNumber& z) {
  return {x.y + z.y, x.lost || z.lost, x.nan_of_loss || z.nan_of_loss};
}
inline FlushedNumber operator-(const FlushedNumber& x, const FlushedNumber& z) {
  return x + -z;
}
inline FlushedNumber operator*(const FlushedNumber& x, const FlushedNumber& z) {
  const auto is_lost = [](const FlushedNumber& factor) { return factor.y == 0 && factor.lost; };
  const bool nan = (is_lost(x) && std::isinf(z.y)) || (is_lost(z) && std::isinf(x.y));
  return {x.y * z.y, x.lost || z.lost, x.nan_of_loss || z.nan_of_loss || nan};
}

/// a b c, a different factor multiplied last in each.
inline std::array<FlushedNumber, 3> products(const FlushedNumber& a, const FlushedNumber& b, const FlushedNumber& c) {
  return {(a * b) * c, (a * c) * b, (b * c) * a};
}

/// A sum whose partial sums are not flushed.
class FlushedSum {
 public:
  void add(const FlushedNumber& term) {
    y_ += term.y;
    lost_ = lost_ || term.lost;
    nan_of_loss_ = nan_of_loss_ || term.nan_of_loss;
  }
  [[nodiscard]] FlushedNumber over(double n) const { return {y_ / n, lost_, nan_of_loss_}; }

 private:
  double y_ = 0;
  bool lost_ = false, nan_of_loss_ = false;
};

}  // namespace numcheck::reference
