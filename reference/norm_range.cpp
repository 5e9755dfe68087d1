#include "reference/norm_range.hpp"

#include <algorithm>

namespace numcheck::reference {

RowRange range_of(std::span<const double> x, double centre, double error) {
  double largest = 0;
  RowRange range;
  for (const double value : x) {
    range.finite = range.finite && std::isfinite(value);
    largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
  }
  // The sums themselves are formed only where they may be large, which is rare.
  constexpr double kLarge = 0x1p50;
  if (largest + std::fabs(centre) + error < kLarge) {
    return range;
  }
  Reach sum;
  Reach squares;
  for (const double value : x) {
    if (std::isfinite(value)) {
      const double distance = std::fabs(value - centre) + error;
      sum.add(std::fabs(value));
      squares.add(distance * distance);
    }
  }
  range.sum_may_overflow = sum.may_overflow();
  range.squares_may_overflow = squares.may_overflow();
  return range;
}

}  // namespace numcheck::reference
