// Softmax of scores that are large compared with 1 / u: their errors move exponentials by factors, where bounds that are
// carried from operation to operation say nothing. But each exponential still lies between two numbers, and so does each
// share of the sum.
//
// The device subtracts the largest of its own scores, so no difference is above 0, and that of a largest score which no
// other can reach is 0. With lo_j <= e_j <= hi_j the share of element j, which grows with e_j and falls with the others,
// lies between
//
//   lo_j / (lo_j + sum of the other hi) (1 - r)   and   hi_j / (hi_j + sum of the other lo) (1 + r),   r = (n + 16) u
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "tolerance/tracked.hpp"

namespace numcheck::reference::detail {

/// A score of one element, or of `count` equal ones.
struct UncertainScore {
  double y = 0;
  double bound = 0;
  double count = 1;
};

struct Interval {
  double low = 0, high = 0;
};

/// What the device's exp(score - maximum) lies between. `error`: of the difference.
inline Interval exponential_between(double difference, double error) {
  const double relative = 2 * tolerance::kUnit32 * (2 + 1.173 * (std::fabs(difference) + error));
  const double least = std::exp(difference - error), most = std::exp(std::min(difference + error, 0.0));
  return {std::max(0.0, least * (1 - relative) - tolerance::kFlush), most * (1 + relative) + tolerance::kFlush};
}

/// Lowers the bounds of y, the softmax of the scores, to what such intervals allow. The scores are finite or -infinity,
/// y's own first, then those of equal elements that are not part of y.
inline void narrow_bounds(std::span<const UncertainScore> scores, std::span<tolerance::Tracked> y) {
  const auto largest = std::ranges::max_element(scores, {}, &UncertainScore::y);
  if (largest == scores.end() || !std::isfinite(largest->y)) {
    return;
  }
  const auto reaches = [&](const UncertainScore& other) {
    return other.y + other.bound >= largest->y - largest->bound && (&other != &*largest || other.count > 1);
  };
  const bool alone = std::ranges::none_of(scores, reaches);
  std::vector<Interval> terms;
  double low = 0, high = 0, elements = 0;
  for (const UncertainScore& score : scores) {
    const double difference = score.y - largest->y;
    // The errors of both, and that of their difference, which may be as much larger.
    const double errors = score.bound + largest->bound;
    const double error = errors + tolerance::kUnit32 * (std::fabs(difference) + errors);
    const bool vanishes = std::isinf(score.y);
    Interval term;
    if (!vanishes) {
      term = alone && &score == &*largest ? exponential_between(0, 0) : exponential_between(difference, error);
    }
    low += score.count * term.low;
    high += score.count * term.high;
    elements += score.count;
    terms.push_back(term);
  }
  const double relative = (elements + 16) * tolerance::kUnit32;
  for (std::size_t j = 0; j < y.size(); ++j) {
    const double other_low = std::max(0.0, low - terms[j].low), other_high = std::max(0.0, high - terms[j].high);
    const double most = terms[j].high == 0 ? 0 : terms[j].high / (terms[j].high + other_low);
    const double least = terms[j].low == 0 ? 0 : terms[j].low / (terms[j].low + other_high);
    const double above = most * (1 + relative) - y[j].y, below = y[j].y - least * (1 - relative);
    const double bound = std::max({above, below, 0.0}) + tolerance::kFlush;
    if (bound < y[j].b) {
      y[j].b = bound;
      y[j].v = std::min(y[j].v, bound * bound);
    }
  }
}

}  // namespace numcheck::reference::detail
