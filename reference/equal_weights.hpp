// Weights of a sum that are all the same, so that rounding errors of adding them are the same, too.
#pragma once

#include <cstddef>

namespace numcheck::reference {

/// Groups of equal weights among those of a sum of p x with the same x, in the order in which they are added.
class EqualWeights {
 public:
  /// Adds a weight; 0 leaves a sum as it is.
  void add(double weight);
  [[nodiscard]] double sum() const noexcept { return sum_; }
  /// sum (m^2 - m) (1 - m p / (2 S))^2 over groups of m weights that are p, S their sum: what m times the same error adds to
  /// that of m independent ones, when the group comes last and the sum is on average that part of S.
  [[nodiscard]] double excess() const;

 private:
  /// Weights that differ by less than an ulp of the sum that they are added to.
  struct Group {
    double weight = 0;
    double count = 0;
  };
  [[nodiscard]] bool is_in(const Group& group, double weight) const;

  Group current_, largest_;  ///< the largest may go on: each head of queries has its own small ones
  double sum_ = 0;
  double squares_ = 0, cubes_ = 0, fourths_ = 0;  ///< sums of m^2 - m, (m^3 - m^2) p and (m^4 - m^3) p^2
};

/// True if `count` numbers differ by so little that their sum rounds all of them alike: their deviation, relative to their mean,
/// is at most count u, half an ulp of the sum. Only the ratio of variance and square of the mean counts.
[[nodiscard]] bool round_alike(double count, double variance, double square_of_mean);

}  // namespace numcheck::reference
