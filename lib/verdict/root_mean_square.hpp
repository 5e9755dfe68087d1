// The size of numbers.
#pragma once

#include <cmath>
#include <span>

namespace numcheck::verdict {

/// sqrt(sum x^2 / n), where what is not finite counts as 0; 0 of none.
[[nodiscard]] inline double root_mean_square(std::span<const double> values) {
  double squares = 0;
  for (const double value : values) {
    squares += std::isfinite(value) ? value * value : 0;
  }
  return values.empty() ? 0 : std::sqrt(squares / static_cast<double>(values.size()));
}

}  // namespace numcheck::verdict
