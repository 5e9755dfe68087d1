#include "reference/equal_weights.hpp"

#include <cmath>

#include "tolerance/tracked.hpp"

namespace numcheck::reference {

bool EqualWeights::is_in(const Group& group, double weight) const {
  return group.count > 0 && std::fabs(weight - group.weight) <= 2 * tolerance::kUnit32 * sum_;
}

void EqualWeights::add(double weight) {
  if (weight == 0) {
    return;
  }
  sum_ += weight;
  if (!is_in(current_, weight)) {
    current_ = is_in(largest_, weight) ? largest_ : Group{weight, 0};
  }
  const double before = current_.count, m = ++current_.count, p = current_.weight;
  squares_ += 2 * before;
  cubes_ += (m * m * before - before * before * (before - 1)) * p;
  fourths_ += (m * m * m * before - before * before * before * (before - 1)) * p * p;
  if (m > largest_.count) {
    largest_ = current_;
  }
}

double EqualWeights::excess() const {
  return sum_ == 0 ? 0 : squares_ - cubes_ / sum_ + fourths_ / (4 * sum_ * sum_);
}

bool round_alike(double count, double variance, double square_of_mean) {
  const double deviation = count * tolerance::kUnit32;
  return variance <= deviation * deviation * square_of_mean;
}

}  // namespace numcheck::reference
