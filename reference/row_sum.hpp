// Sum over a row whose terms may be added by lanes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "tolerance/tracked.hpp"

namespace numcheck::reference {

template <class Scalar>
class RowSum : public tolerance::Sum<Scalar> {};

/// Squares of the partial sums of kLanes lanes that take kVector terms at a time, and then of two lanes, and so on, the halves
/// first.
template <std::size_t kLanes, std::size_t kVector>
class LaneSums {
 public:
  void add(double term) {
    double& lane = lanes_[count_ / kVector % kLanes];
    lane += term;
    const bool is_first = count_ % kVector == 0 && count_ < kLanes * kVector;
    squares_ += is_first ? 0 : lane * lane;
    ++count_;
  }
  [[nodiscard]] double squares() const {
    std::array<double, kLanes> lanes = lanes_;
    double squares = squares_;
    std::size_t used = std::min((count_ + kVector - 1) / kVector, kLanes);
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i + half < used; ++i) {
        lanes[i] += lanes[i + half];
        squares += lanes[i] * lanes[i];
      }
      used = std::min(used, half);
    }
    return squares;
  }

 private:
  std::array<double, kLanes> lanes_{};
  double squares_ = 0;
  std::size_t count_ = 0;
};

/// Kernels add every 2^n-th term, or vector of terms, in a lane of its own, and the lanes' sums pairwise. Signs that alternate,
/// singly or in runs, keep the partial sums of the natural chain small, and may be alike in each lane until the last step: where
/// the squares of what the lanes of two such kernels round add up to more, they take the chain's place.
template <>
class RowSum<tolerance::Tracked> {
 public:
  void add(const tolerance::Tracked& term) {
    sum_.add(term);
    single_.add(term.y);
    vectors_.add(term.y);
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
    const double lanes = std::max(single_.squares(), vectors_.squares());
    total.v += tolerance::kRoundVariance * kUnit32 * kUnit32 * std::max(0.0, lanes - chain);
    return total;
  }

 private:
  tolerance::Sum<tolerance::Tracked> sum_;
  LaneSums<64, 1> single_;
  LaneSums<32, 8> vectors_;  // a warp that loads eight at a time
  double natural_ = 0, natural_squares_ = 0, squares_ = 0;
  std::size_t count_ = 0;
};

}  // namespace numcheck::reference
