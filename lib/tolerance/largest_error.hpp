// The error of the largest of many numbers, each of which has errors of its own.
#pragma once

#include <algorithm>
#include <cmath>

namespace numcheck::tolerance {

/// Numbers y_i with errors e_i, of bounds B_i and predicted squares V_i, and M = max y_i. One that is g_i = M - y_i below
/// the largest can exceed it only with what exceeds g_i of its error, so max (y_i + e_i) is off by at most max (B_i - g_i);
/// hardly an error is larger than 6 sqrt V_i, so its square is max (sqrt V_i - g_i / 6)^2: where (sqrt V_i - g_i / 6) z
/// is reached, z <= 6, e_i is at least z sqrt V_i.
class LargestError {
 public:
  /// `below`: g_i.
  void add(double bound, double variance, double below) {
    constexpr double kDeviations = 6;
    const double gap = std::max(0.0, below);
    const double deviation = std::max(0.0, std::sqrt(variance) - gap / kDeviations);
    bound_ = std::max(bound_, bound - gap);
    variance_ = std::max(variance_, deviation * deviation);
  }

  [[nodiscard]] double bound() const noexcept { return bound_; }
  [[nodiscard]] double variance() const noexcept { return variance_; }

 private:
  double bound_ = 0;
  double variance_ = 0;
};

}  // namespace numcheck::tolerance
