// The scale that codes were made with, from the codes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "core/dtype.hpp"

namespace numcheck::diagnose {

/// Positive scales w for which `fitting` of `of` stored numbers are RN(unit w): as many as there are for any scale.
struct ScaleRange {
  double low = 0, high = 0;
  std::size_t fitting = 0, of = 0;  ///< without zeros and saturated codes, which fit half of all scales

  [[nodiscard]] double middle() const { return (low + high) / 2; }
  [[nodiscard]] bool has(double scale, double tolerance) const {
    return scale >= low * (1 - tolerance) && scale <= high * (1 + tolerance);
  }
};

/// Every number that is rounded to nearest says between which two the scale lies: what most of them agree on does not depend
/// on where others saturate or are wrong. `unit` and `stored` are parallel. Nothing if no element says anything.
[[nodiscard]] std::optional<ScaleRange> scale_range(std::span<const double> unit, std::span<const double> stored,
                                                    core::Dtype dtype);

}  // namespace numcheck::diagnose
