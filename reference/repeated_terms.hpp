// Sums whose terms repeat: their rounding errors repeat too, and add up instead of cancelling.
#pragma once

#include <array>
#include <cstddef>

#include "tolerance/tracked.hpp"

namespace numcheck::reference {

/// Watches the terms g_i = dy_i f(x_i) of one sum and finds what tolerance::Sum, which takes all errors as independent,
/// leaves out of the variance where there are few distinct values:
///
///   terms     the error of f is the same wherever x is: those of one x form a group with the error (sum +-b_i), whose
///             variance is at most a third of its square
///   function  where f is flat, one FP32 number stands for f of many x (of 1 - s near s = 1, a few units are left):
///             terms with the same FP32 f(x) likewise form a group, with f's part of b_i
///   sums      partial sums are multiples of their ulp, so that adding v errs by the same r_v throughout a binade, and
///             adding -v by -r_v: values that occur n_v times more often than their negatives err by sum n_v r_v, with
///             |r_v| <= u times the largest partial sum; a third of its square counts as often as sum n_v^2 exceeds
///             the number of terms
///
/// With more values than it can hold, the terms count as independent.
class RepeatedTerms {
 public:
  /// `function`: f(x) in FP32 arithmetic; 1 if the terms are dy alone.
  void add(double x, float function, double dy, const tolerance::Tracked& term) {
    by_x_.add(x, dy, term.b, term.v);
    by_function_.add(static_cast<double>(function), dy, bound_of_function(term), term.v);
    add_value(term.y);
  }

  [[nodiscard]] double excess_variance() const;

 private:
  static constexpr std::size_t kMaxGroups = 64;

  /// Terms with the same key, which share one error.
  class Groups {
   public:
    void add(double key, double dy, double bound, double variance);
    [[nodiscard]] double excess_variance() const;

   private:
    struct Group {
      double key = 0;
      double bound = 0;  ///< sum of the bounds, with the sign of dy
      double variance = 0;
      bool several = false;
    };
    std::array<Group, kMaxGroups> groups_{};
    std::size_t count_ = 0;
    bool few_ = true;
  };
  struct GroupOfValues {
    double magnitude = 0;
    double net = 0;  ///< terms of this value less those of its negative
  };

  /// What is left of a term's bound without the rounding of the product with dy.
  static double bound_of_function(const tolerance::Tracked& term);
  void add_value(double term);

  Groups by_x_;
  Groups by_function_;
  std::array<GroupOfValues, kMaxGroups> values_{};
  std::size_t value_count_ = 0;
  bool few_values_ = true;
  double terms_ = 0;  ///< non-zero ones: adding a zero is exact
  double partial_ = 0;
  double largest_partial_ = 0;
};

/// The variance of one result if all results have the same error, so that many of them tell no more than one.
[[nodiscard]] inline double variance_of_copies(const tolerance::Tracked& x) {
  const double square = x.b * x.b / 3;
  return square > x.v ? square : x.v;
}

/// True if there are several numbers and all are the same.
[[nodiscard]] bool all_copies(const double* data, std::size_t count);

}  // namespace numcheck::reference
