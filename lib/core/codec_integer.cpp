#include "core/codec_integer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace numcheck::core {
namespace {

double rounded(double value, Rounding rounding) noexcept {
  switch (rounding) {
    case Rounding::nearest_away:
      return std::round(value);
    case Rounding::toward_zero:
      return std::trunc(value);
    case Rounding::toward_positive:
      return std::ceil(value);
    case Rounding::nearest_even:
      break;
  }
  return std::nearbyint(value);
}

}  // namespace

std::uint64_t encode_integer(double value, Dtype dtype, Rounding rounding) noexcept {
  if (std::isnan(value)) {
    return 0;
  }
  const double whole = rounded(value, rounding);
  if (dtype == Dtype::uint8) {
    return static_cast<std::uint64_t>(std::clamp(whole, 0.0, 255.0));
  }
  const auto word = static_cast<std::int32_t>(std::clamp(whole, -2147483648.0, 2147483647.0));
  return static_cast<std::uint32_t>(word);
}

double decode_integer(std::uint64_t bits, Dtype dtype) noexcept {
  return dtype == Dtype::uint8
             ? static_cast<double>(bits & 0xFF)
             : static_cast<double>(static_cast<std::int32_t>(static_cast<std::uint32_t>(bits & 0xFFFF'FFFF)));
}

void encode_integers(std::span<const double> values, Dtype dtype, std::span<std::byte> bytes, Rounding rounding) {
  const auto width = static_cast<std::size_t>(dtype_info(dtype).storage_bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t word = encode_integer(values[i], dtype, rounding);
    std::memcpy(bytes.data() + i * width, &word, width);  // little endian, like the GPUs
  }
}

void decode_integers(std::span<const std::byte> bytes, Dtype dtype, std::span<double> values) {
  const auto width = static_cast<std::size_t>(dtype_info(dtype).storage_bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * width, width);
    values[i] = decode_integer(word, dtype);
  }
}

}  // namespace numcheck::core
