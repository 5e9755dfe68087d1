// An encoder that shares nothing with the product's: it computes the format's values from the definition, finds the two
// neighbours of a number among them, and chooses between them as IEEE 754 section 4.3 says.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/codec.hpp"

namespace numcheck::test {

struct ReferenceFormat {
  core::Dtype dtype;
  int exponent_bits;
  int fraction_bits;
  int bias;
  std::uint64_t max_code;       ///< of the largest finite magnitude
  std::uint64_t overflow_code;  ///< of infinity, of NaN if there is none, else max_code
  std::uint64_t nan_code;
  int word_shift;
};

/// Written down from OCP OFP8 1.0, OCP MX 1.0, IEEE 754-2019 and the PTX ISA, not from the product's table.
inline constexpr ReferenceFormat kReferenceFormats[] = {
    {core::Dtype::fp32, 8, 23, 127, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0},
    {core::Dtype::tf32, 8, 10, 127, 0x3FBFF, 0x3FC00, 0x3FE00, 13},
    {core::Dtype::bf16, 8, 7, 127, 0x7F7F, 0x7F80, 0x7FFF, 0},
    {core::Dtype::fp16, 5, 10, 15, 0x7BFF, 0x7C00, 0x7FFF, 0},
    {core::Dtype::fp8_e4m3, 4, 3, 7, 0x7E, 0x7F, 0x7F, 0},
    {core::Dtype::fp8_e5m2, 5, 2, 15, 0x7B, 0x7C, 0x7F, 0},
    {core::Dtype::e8m0, 8, 0, 127, 0xFE, 0xFF, 0xFF, 0},
    {core::Dtype::fp4_e2m1, 2, 1, 1, 0x7, 0x7, 0x7, 0},
};

inline const ReferenceFormat& reference_format(core::Dtype dtype) {
  for (const ReferenceFormat& format : kReferenceFormats) {
    if (format.dtype == dtype) {
      return format;
    }
  }
  return kReferenceFormats[0];
}

/// Value of a magnitude's code, as if the exponents went on beyond the largest finite one.
inline double reference_value(const ReferenceFormat& format, std::uint64_t code) {
  const auto field = static_cast<int>(code >> format.fraction_bits);
  const auto fraction = static_cast<double>(code & ((std::uint64_t{1} << format.fraction_bits) - 1));
  const bool without_zero = format.dtype == core::Dtype::e8m0;
  if (field == 0 && !without_zero) {
    return std::ldexp(fraction, 1 - format.bias - format.fraction_bits);
  }
  return std::ldexp(std::ldexp(1.0, format.fraction_bits) + fraction, field - format.bias - format.fraction_bits);
}

/// Largest code up to one beyond the largest finite whose value is not above `magnitude`; 0 if there is none.
inline std::uint64_t code_below(const ReferenceFormat& format, double magnitude) {
  std::uint64_t low = 0;
  std::uint64_t high = format.max_code + 1;
  while (low < high) {
    const std::uint64_t middle = (low + high + 1) / 2;
    if (reference_value(format, middle) <= magnitude) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

inline bool rounds_up(const ReferenceFormat& format, double magnitude, std::uint64_t below, bool negative,
                      core::Rounding rounding) {
  const double low = reference_value(format, below);
  const double high = reference_value(format, below + 1);
  if (magnitude <= low) {
    return false;
  }
  const double to_low = magnitude - low;
  const double to_high = high - magnitude;
  switch (rounding) {
    case core::Rounding::toward_zero:
      return false;
    case core::Rounding::toward_positive:
      return !negative;
    case core::Rounding::nearest_away:
      return to_low >= to_high;
    case core::Rounding::nearest_even:
      break;
  }
  return to_low > to_high || (to_low == to_high && (below & 1) != 0);
}

inline std::uint64_t reference_encode(double value, core::Dtype dtype, core::Overflow overflow,
                                      core::Rounding rounding) {
  const ReferenceFormat& format = reference_format(dtype);
  if (std::isnan(value)) {
    return format.nan_code << format.word_shift;
  }
  const bool has_sign = dtype != core::Dtype::e8m0;
  const bool negative = has_sign && std::signbit(value);
  const double magnitude = std::fabs(value);
  const std::uint64_t beyond = overflow == core::Overflow::saturate ? format.max_code : format.overflow_code;
  std::uint64_t code = 0;
  if (std::isinf(value)) {
    code = beyond;
  } else {
    code = code_below(format, magnitude);
    if (code <= format.max_code && rounds_up(format, magnitude, code, negative, rounding)) {
      ++code;
    }
    if (code > format.max_code) {
      const bool stays =
          rounding == core::Rounding::toward_zero || (rounding == core::Rounding::toward_positive && negative);
      code = stays ? format.max_code : beyond;
    }
  }
  const std::uint64_t sign = std::uint64_t{negative} << (format.exponent_bits + format.fraction_bits);
  return (code | sign) << format.word_shift;
}

}  // namespace numcheck::test
