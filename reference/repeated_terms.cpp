#include "reference/repeated_terms.hpp"

#include <algorithm>
#include <cmath>

namespace numcheck::reference {

double RepeatedTerms::excess_variance() const {
  double excess = 0;
  for (std::size_t i = 0; few_groups_ && i < group_count_; ++i) {
    const GroupOfTerms& group = groups_[i];
    excess += std::max(0.0, group.bound * group.bound / 3 - group.variance);
  }
  double squares = 0;
  for (std::size_t i = 0; few_values_ && i < value_count_; ++i) {
    squares += values_[i].net * values_[i].net;
  }
  const double step = tolerance::kUnit32 * largest_partial_;
  return excess + std::max(0.0, squares - terms_) * step * step / 3;
}

void RepeatedTerms::add_group(double x, double dy, const tolerance::Tracked& term) {
  if (!few_groups_ || term.b == 0) {
    return;
  }
  auto* const end = groups_.begin() + group_count_;
  auto* found = std::find_if(groups_.begin(), end, [x](const GroupOfTerms& group) { return group.x == x; });
  if (found == end) {
    few_groups_ = group_count_ < kMostGroups;
    if (!few_groups_) {
      return;
    }
    ++group_count_;
    *found = {.x = x};
  }
  found->bound += std::copysign(term.b, dy);
  found->variance += term.v;
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
    few_values_ = value_count_ < kMostGroups;
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
