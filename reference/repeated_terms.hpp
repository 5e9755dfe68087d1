// Sums whose terms repeat: their rounding errors repeat too, and add up instead of cancelling.
#pragma once

#include <array>
#include <cstddef>

#include "tolerance/tracked.hpp"

namespace numcheck::reference {

/// Watches the terms g_i = dy_i f(x_i) of one sum and finds what tolerance::Sum, which takes all errors as independent,
/// leaves out of the variance where there are few different values:
///
///   terms     the error of f is the same wherever x is: those of one x make a group with the error (sum +-b_i), whose
///             variance is at most a third of its square
///   sums      adding the same number again and again errs by the same amount within a binade: a third of the square
///             of the bound
///
/// With more values than it can hold, the terms count as independent.
class RepeatedTerms {
 public:
  void add(double x, double dy, const tolerance::Tracked& term) {
    add_group(x, dy, term);
    add_value(term);
  }

  /// `sum`: of the same terms.
  [[nodiscard]] double excess_variance(const tolerance::Tracked& sum) const;

 private:
  static constexpr std::size_t kMostGroups = 64;

  struct GroupOfTerms {
    double x = 0;
    double bound = 0;  ///< sum of the bounds, with the sign of dy
    double variance = 0;
  };

  void add_group(double x, double dy, const tolerance::Tracked& term);
  void add_value(const tolerance::Tracked& term);

  std::array<GroupOfTerms, kMostGroups> groups_{};
  std::size_t group_count_ = 0;
  bool few_groups_ = true;
  double value_ = 0;  ///< the one value, 0 aside, that all terms have
  bool one_value_ = true;
  double bounds_ = 0;
};

/// The variance of one result where all results have the same error, so that many of them tell no more than one.
[[nodiscard]] inline double variance_of_copies(const tolerance::Tracked& x) {
  const double square = x.b * x.b / 3;
  return square > x.v ? square : x.v;
}

/// True if there are several numbers and all are the same.
[[nodiscard]] bool all_copies(const double* data, std::size_t count);

}  // namespace numcheck::reference
