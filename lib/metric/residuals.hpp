// Where the results of a 16- or 8-bit output lie between two of its numbers, and where those of a perfect rounding do.
#pragma once

#include <array>
#include <cstdint>

#include "core/dtype.hpp"
#include "metric/accumulators.hpp"

namespace numcheck::metric {

/// Of (got - y) / ulp(y), and of (RN(y) - y) / ulp(y), in bins of 1/64 from -1 to 1; negative is toward zero.
class Residuals {
 public:
  /// Elements of the segment whose y is not 0.
  void add(const SegmentView& segment, core::Dtype dtype);
  void add(const Residuals& other);

  /// Largest difference of the two distribution functions; 0 if there are no elements.
  [[nodiscard]] double distance() const;

 private:
  static constexpr int kBins = 128;
  std::array<std::int64_t, kBins> excess_{};  ///< elements of the output in a bin, less those of the perfect rounding
  std::int64_t count_ = 0;
};

}  // namespace numcheck::metric
