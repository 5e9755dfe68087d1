#include "reference/repeated_terms.hpp"

#include <algorithm>
#include <cmath>

namespace numcheck::reference {

double RepeatedTerms::Groups::excess_variance() const {
  double excess = 0;
  for (std::size_t i = 0; few_ && i < count_; ++i) {
    const Group& group = groups_[i];
    excess += group.several ? std::max(0.0, group.bound * group.bound / 3 - group.variance) : 0;
  }
  return excess;
}

void RepeatedTerms::Groups::add(double key, double dy, double bound, double variance) {
  if (!few_ || bound == 0) {
    return;
  }
  auto* const end = groups_.begin() + count_;
  auto* found = std::find_if(groups_.begin(), end, [key](const Group& group) { return group.key == key; });
  if (found == end) {
    few_ = count_ < kMaxGroups;
    if (!few_) {
      return;
    }
    ++count_;
    *found = {.key = key};
  } else {
    found->several = true;
  }
  found->bound += std::copysign(bound, dy);
  found->variance += variance;
}

double RepeatedTerms::excess_variance() const {
  double squares = 0;
  for (std::size_t i = 0; few_values_ && i < value_count_; ++i) {
    squares += values_[i].net * values_[i].net;
  }
  const double step = tolerance::kUnit32 * largest_partial_;
  return std::max(by_x_.excess_variance(), by_function_.excess_variance()) +
         std::max(0.0, squares - terms_) * step * step / 3;
}

double RepeatedTerms::bound_of_function(const tolerance::Tracked& term) {
  const double product = tolerance::kUnit32 * (std::fabs(term.y) + term.b) + tolerance::kUnderflow;
  return std::max(0.0, term.b - product);
}

void RepeatedTerms::add_value(double term) {
  if (!few_values_ || term == 0) {
    return;
  }
  const double magnitude = std::fabs(term);
  auto* const end = values_.begin() + value_count_;
  auto* found = std::find_if(values_.begin(), end,
                             [magnitude](const GroupOfValues& group) { return group.magnitude == magnitude; });
  if (found == end) {
    few_values_ = value_count_ < kMaxGroups;
    if (!few_values_) {
      return;
    }
    ++value_count_;
    *found = {.magnitude = magnitude};
  }
  found->net += term < 0 ? -1 : 1;
  ++terms_;
  partial_ += term;
  largest_partial_ = std::max(largest_partial_, std::fabs(partial_));
}

bool all_copies(const double* data, std::size_t count) {
  return count > 1 && std::all_of(data + 1, data + count, [first = *data](double x) { return x == first; });
}

}  // namespace numcheck::reference
