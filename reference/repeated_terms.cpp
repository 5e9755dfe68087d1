#include "reference/repeated_terms.hpp"

#include <algorithm>
#include <cmath>

namespace numcheck::reference {

double RepeatedTerms::excess_variance(const tolerance::Tracked& sum) const {
  double excess = 0;
  for (std::size_t i = 0; few_groups_ && i < group_count_; ++i) {
    const GroupOfTerms& group = groups_[i];
    excess += std::max(0.0, group.bound * group.bound / 3 - group.variance);
  }
  const double of_sums = std::max(0.0, sum.b - bounds_);
  return one_value_ ? excess + of_sums * of_sums / 3 : excess;
}

void RepeatedTerms::add_group(double x, double dy, const tolerance::Tracked& term) {
  bounds_ += term.b;
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

void RepeatedTerms::add_value(const tolerance::Tracked& term) {
  if (term.y != 0 && one_value_) {
    one_value_ = value_ == 0 || value_ == term.y;
    value_ = term.y;
  }
}

bool all_copies(const double* data, std::size_t count) {
  return count > 1 && std::all_of(data + 1, data + count, [first = *data](double x) { return x == first; });
}

}  // namespace numcheck::reference
