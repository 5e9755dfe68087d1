// Sum over a row whose terms may be added by lanes.
#pragma once

#include <array>
#include <cstddef>

#include "tolerance/tracked.hpp"

namespace numcheck::reference {

template <class Scalar>
class RowSum : public tolerance::Sum<Scalar> {};

/// Squares of the partial sums of kLanes lanes that take kVector terms at a time, and then of two lanes, and so on, the halves
/// first.
template <class T, std::size_t kLanes, std::size_t kVector>
class LaneSums {
 public:
  void add(T term) {
    T& lane = lanes_[count_ / kVector % kLanes];
    lane += term;
    const bool is_first = count_ % kVector == 0 && count_ < kLanes * kVector;
    squares_ += is_first ? T(0.0) : lane * lane;
    ++count_;
  }
  [[nodiscard]] T squares() const {
    std::array<T, kLanes> lanes = lanes_;
    T squares = squares_;
    const std::size_t filled = (count_ + kVector - 1) / kVector;
    std::size_t used = filled < kLanes ? filled : kLanes;
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i + half < used; ++i) {
        lanes[i] += lanes[i + half];
        squares += lanes[i] * lanes[i];
      }
      used = used < half ? used : half;
    }
    return squares;
  }

 private:
  std::array<T, kLanes> lanes_{};
  T squares_{};
  std::size_t count_ = 0;
};

/// Kernels add every 2^n-th term, or vector of terms, in a lane of its own, and the lanes' sums pairwise. Signs that alternate,
/// singly or in runs, keep the partial sums of the natural chain small, and may be alike in each lane until the last step: where
/// the squares of what the lanes of two such kernels round add up to more, they take the chain's place.
template <class T>
class RowSum<tolerance::TrackedOf<T>> {
 public:
  void add(const tolerance::TrackedOf<T>& term) {
    sum_.add(term);
    single_.add(term.y);
    vectors_.add(term.y);
    ++count_;
    natural_ += term.y;
    natural_squares_ += natural_ * natural_;
    squares_ += term.y * term.y;
  }
  [[nodiscard]] tolerance::TrackedOf<T> result() const {
    using tolerance::kUnit32;
    using tolerance::larger;
    tolerance::TrackedOf<T> total = sum_.result();
    const T chain = larger(static_cast<double>(count_) * (squares_ / 6 + total.y * total.y / 3), natural_squares_);
    const T lanes = larger(single_.squares(), vectors_.squares());
    total.v += tolerance::kRoundVariance * kUnit32 * kUnit32 * larger(T(0.0), lanes - chain);
    return total;
  }

 private:
  tolerance::Sum<tolerance::TrackedOf<T>> sum_;
  LaneSums<T, 64, 1> single_;
  LaneSums<T, 32, 8> vectors_;  // a warp that loads eight at a time
  T natural_{}, natural_squares_{}, squares_{};
  std::size_t count_ = 0;
};

}  // namespace numcheck::reference
