// Results that repeat: equal sums are rounded alike, so that one error moves all of them at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/dtype.hpp"

namespace numcheck::metric {

/// How many of the values other than 0 have, on average, the magnitude of one of them, itself included: sum n^2 / sum n over
/// the magnitudes. Estimated from pairs among about 4096 of the values; 1 if all differ.
[[nodiscard]] double repeats_of(std::span<const double> values);

/// The same of values that come in parts.
class SampledMagnitudes {
 public:
  explicit SampledMagnitudes(std::size_t size);
  /// The values from `first` on; parts may be added by several threads.
  void add(std::size_t first, std::span<const double> values);
  [[nodiscard]] double repeats() const;

 private:
  std::size_t size_, stride_;
  std::vector<std::uint64_t> bits_;  ///< of one value of each stride; 0: a zero, or not finite
};

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
