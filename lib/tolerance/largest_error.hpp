// The error of the largest of many numbers, each of which has errors of its own.
#pragma once

#include <algorithm>

namespace numcheck::tolerance {

/// Numbers y_i with errors e_i, of bounds B_i and predicted deviations d_i, and M = max y_i. One that is g_i = M - y_i below
/// the largest can exceed it only with what exceeds g_i of its error, so max (y_i + e_i) is off by at most max (B_i - g_i);
/// hardly an error is larger than 6 d_i, so its deviation is max (d_i - g_i / 6): where (d_i - g_i / 6) z is reached, z <= 6,
/// e_i is at least z d_i.
class LargestError {
 public:
  /// `below`: g_i.
  void add(double bound, double deviation, double below) {
    constexpr double kDeviations = 6;
    const double gap = std::max(0.0, below);
    bound_ = std::max(bound_, bound - gap);
    deviation_ = std::max(deviation_, deviation - gap / kDeviations);
  }

  [[nodiscard]] double bound() const noexcept { return bound_; }
  [[nodiscard]] double deviation() const noexcept { return deviation_; }

 private:
  double bound_ = 0;
  double deviation_ = 0;
};

}  // namespace numcheck::tolerance
