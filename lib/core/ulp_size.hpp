// core::ulp of one format for loops over elements.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/dtype.hpp"

namespace numcheck::core {

class UlpSize {
 public:
  explicit UlpSize(Dtype dtype) noexcept
      : largest_(dtype_info(dtype).max_finite),
        smallest_(std::ldexp(1.0, dtype_info(dtype).emin)),
        unit_(std::ldexp(1.0, -dtype_info(dtype).fraction_bits)) {}

  /// As core::ulp gives it, but for NaN.
  [[nodiscard]] double of(double value) const noexcept {
    constexpr std::uint64_t kExponent = 0x7ff0'0000'0000'0000;
    // Without references, as std::min has them: compilers make vectors of it.
    const double magnitude = std::fabs(value);
    const double finite = magnitude < largest_ ? magnitude : largest_;
    const double normal = finite > smallest_ ? finite : smallest_;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(normal) & kExponent) * unit_;
  }

 private:
  double largest_, smallest_, unit_;
};

}  // namespace numcheck::core
