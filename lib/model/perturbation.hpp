// A relative fault of a chosen size in part of an output, to find the smallest that the checks see.
#pragma once

#include <cstdint>
#include <span>

namespace numcheck::model {

/// Which values become v (1 + size); the parts of a matrix are those in its middle.
enum class PerturbedPart : std::uint8_t {
  all,
  noise,    ///< all, each with its own factor: uniform, with mean 0 and rms `size`
  row,      ///< the middle one
  tile,     ///< the 64 x 64 values, aligned to multiples of 64, that hold the middle
  element,  ///< the largest of the middle row
};

struct Perturbation {
  PerturbedPart part = PerturbedPart::all;
  double size = 0;
  std::int64_t rows = 0;  ///< of the whole output, all matrices of a batch below each other

  /// Changes the values of one row before they are rounded to the output's format.
  void apply(std::int64_t row, std::span<double> values) const;
};

}  // namespace numcheck::model
