// The rounding itself, in a form that compilers vectorise: both ranges are computed, then one is chosen. Included by
// every translation unit that encodes; its names are local to each, so that no linker mixes instruction sets.
#pragma once

#include "core/codec_kernels.hpp"

namespace numcheck::core {
namespace {

constexpr std::uint64_t kMagnitudeMask = 0x7FFFFFFFFFFFFFFF;
constexpr std::uint64_t kInfinityBits = 0x7FF0000000000000;

/// Code of a normal number: the significand is rounded in the double's own bits, and a carry moves into the exponent.
template <CodecRounding rounding>
inline std::int64_t normal_code(std::uint64_t magnitude, bool negative, const CodecFormat& format) {
  const std::uint64_t unit = std::uint64_t{1} << format.shift;
  std::uint64_t increment = 0;
  if constexpr (rounding == CodecRounding::nearest_even) {
    increment = (unit >> 1) - 1 + ((magnitude >> format.shift) & 1);
  } else if constexpr (rounding == CodecRounding::nearest_away) {
    increment = unit >> 1;
  } else if constexpr (rounding == CodecRounding::toward_positive) {
    increment = negative ? 0 : unit - 1;
  }
  return static_cast<std::int64_t>((magnitude + increment - format.rebias) >> format.shift);
}

/// Code of a subnormal: the sum with `aligner` is rounded to nearest even by the processor, and its low bits are the
/// code; the other roundings correct that by one. `value - back` is exact.
template <CodecRounding rounding>
inline std::int64_t subnormal_code(double value, bool negative, const CodecFormat& format) {
  const double aligned = value + format.aligner;
  const double back = aligned - format.aligner;
  std::int64_t code = __builtin_bit_cast(std::int64_t, aligned) - __builtin_bit_cast(std::int64_t, format.aligner);
  if constexpr (rounding == CodecRounding::nearest_away) {
    code += value - back == format.half_spacing ? 1 : 0;
  } else if constexpr (rounding == CodecRounding::toward_zero) {
    code -= back > value ? 1 : 0;
  } else if constexpr (rounding == CodecRounding::toward_positive) {
    const std::int64_t up = back < value ? 1 : 0;
    const std::int64_t down = back > value ? 1 : 0;
    code += negative ? -down : up;
  }
  return code;
}

/// The stored word of a value, in one rounding.
template <CodecRounding rounding>
inline std::int64_t word_of(double value, const CodecFormat& format) {
  const auto bits = __builtin_bit_cast(std::uint64_t, value);
  const bool has_sign = (bits >> 63) != 0;
  const bool negative = has_sign && format.sign_code != 0;
  const double positive = __builtin_bit_cast(double, bits& kMagnitudeMask);
  const double magnitude = positive < format.floor ? format.floor : positive;
  const auto magnitude_bits = __builtin_bit_cast(std::uint64_t, magnitude);
  const std::int64_t normal = normal_code<rounding>(magnitude_bits, negative, format);
  const std::int64_t subnormal = subnormal_code<rounding>(magnitude, negative, format);
  std::int64_t code = magnitude < format.min_normal ? subnormal : normal;
  std::int64_t beyond = format.overflow_code;
  if constexpr (rounding == CodecRounding::toward_zero) {
    beyond = magnitude_bits == kInfinityBits ? beyond : format.max_code;
  } else if constexpr (rounding == CodecRounding::toward_positive) {
    beyond = negative && magnitude_bits != kInfinityBits ? format.max_code : beyond;
  }
  code = code > format.max_code ? beyond : code;
  code += has_sign ? format.sign_code : 0;
  code = magnitude != magnitude ? format.nan_code : code;
  return code << format.word_shift;
}

}  // namespace
}  // namespace numcheck::core
