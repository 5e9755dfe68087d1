// The largest finite magnitude among numbers, and whether all of them are finite, as fast as they can be read.
#pragma once

#include <span>

namespace numcheck::core {

struct Magnitudes {
  double largest = 0;  ///< of those that are finite
  bool all_finite = true;
};

[[nodiscard]] Magnitudes magnitudes_of(std::span<const double> values) noexcept;

/// 0 of none.
[[nodiscard]] inline double largest_finite(std::span<const double> values) noexcept {
  return magnitudes_of(values).largest;
}

}  // namespace numcheck::core
