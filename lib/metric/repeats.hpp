// Results that repeat: equal sums are rounded alike, so that one error moves all of them at once.
#pragma once

#include <cstdint>
#include <span>

#include "core/dtype.hpp"

namespace numcheck::metric {

/// How many of the values other than 0 have, on average, the magnitude of one of them, itself included: sum n^2 / sum n over
/// the magnitudes. Estimated from pairs among about 4096 of the values; 1 if all differ.
[[nodiscard]] double repeats_of(std::span<const double> values);

/// A matrix of which the elements of a row, or of a column, share their error: rows of `length` elements at a distance of
/// `stride`.
struct Lines {
  std::int64_t length = 1, stride = 1;
};

/// How many elements of its line one error moves across a boundary of the output's format together with an element, itself
/// included, on average: one at a distance of d ulps counts as 1 - 2 d, because an error of half an ulp moves that part of
/// such pairs together. `scale`: what is rounded is value * scale. Estimated from about 4096 pairs.
[[nodiscard]] double rounded_together(std::span<const double> values, const Lines& lines, core::Dtype format,
                                      double scale);

}  // namespace numcheck::metric
