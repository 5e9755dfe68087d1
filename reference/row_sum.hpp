// Sum over a row whose terms may be added by lanes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "tolerance/tracked.hpp"

namespace numcheck::reference {

template <class Scalar>
class RowSum : public tolerance::Sum<Scalar> {};

/// Kernels add every 2^n-th term in a lane of its own, and the lanes' sums pairwise, the halves first. Signs that alternate,
/// which keep the partial sums of the natural chain small, are then alike in each lane and until the last step: where the
/// squares of what 64 lanes round add up to more, they take the chain's place.
template <>
class RowSum<tolerance::Tracked> {
 public:
  void add(const tolerance::Tracked& term) {
    sum_.add(term);
    double& lane = lanes_[count_ % lanes_.size()];
    lane += term.y;
    lane_squares_ += count_ < lanes_.size() ? 0 : lane * lane;
    ++count_;
    natural_ += term.y;
    natural_squares_ += natural_ * natural_;
    squares_ += term.y * term.y;
  }
  [[nodiscard]] tolerance::Tracked result() const {
    using tolerance::kUnit32;
    tolerance::Tracked total = sum_.result();
    const double chain =
        std::max(static_cast<double>(count_) * (squares_ / 6 + total.y * total.y / 3), natural_squares_);
    total.v += tolerance::kRoundVariance * kUnit32 * kUnit32 * std::max(0.0, lane_squares_ + tree_squares() - chain);
    return total;
  }

 private:
  /// Of the sums of two lanes, of two of these, and so on.
  [[nodiscard]] double tree_squares() const {
    std::array<double, 64> lanes = lanes_;
    double squares = 0;
    std::size_t used = std::min(count_, lanes.size());
    for (std::size_t half = lanes.size() / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i + half < used; ++i) {
        lanes[i] += lanes[i + half];
        squares += lanes[i] * lanes[i];
      }
      used = std::min(used, half);
    }
    return squares;
  }

  tolerance::Sum<tolerance::Tracked> sum_;
  std::array<double, 64> lanes_{};
  double lane_squares_ = 0, natural_ = 0, natural_squares_ = 0, squares_ = 0;
  std::size_t count_ = 0;
};

}  // namespace numcheck::reference
