// Which key has the largest score, if errors of scores may be larger than their distance.
#pragma once

#include <algorithm>
#include <limits>

namespace numcheck::reference {

/// Error models count errors of scores to first order: they suppose that weights stay about what they are. FP8 products
/// keep 13 bits of their sum's largest term, so scores of large magnitudes may be off by more than 1, and a key that weighs
/// nothing may come to weigh most; so may FP32's and TF32's of scores that are large enough. A row is close if that may
/// happen: if another key's score, raised by its error, exceeds the largest score, lowered by its own, and either error is
/// large enough to matter.
class Contenders {
 public:
  /// `swing` is how far the error may move the score.
  void add(double score, double swing) noexcept {
    const double high = score + swing, of_first = first_, swing_of_first = first_swing_;
    if (high > first_) {
      first_ = high;
      first_swing_ = swing;
    }
    const bool replaced = first_ != of_first;
    const double loser = replaced ? of_first : high, loser_swing = replaced ? swing_of_first : swing;
    if (loser > second_) {
      second_ = loser;
      second_swing_ = loser_swing;
    }
    certain_ = std::max(certain_, score - swing);
  }

  static constexpr double kMatters = 0.5;  ///< a swing from which on it does: weights may change by a factor of e^0.5

  /// With a margin, a row is also close if such a key may come to weigh exp(-margin).
  [[nodiscard]] bool is_close(double margin = 0) const noexcept {
    return second_ >= certain_ - margin && swing() > kMatters;  // what has no error of its own may be both
  }

  /// The larger one of the two that come first.
  [[nodiscard]] double swing() const noexcept { return std::max(first_swing_, second_swing_); }

 private:
  static constexpr double kNone = -std::numeric_limits<double>::infinity();
  double first_ = kNone, second_ = kNone;  ///< the two largest of score + swing
  double first_swing_ = 0, second_swing_ = 0;
  double certain_ = kNone;  ///< the largest of score - swing
};

}  // namespace numcheck::reference
