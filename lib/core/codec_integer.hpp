// The integer formats: saturating, one rounding, NaN becomes 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/codec.hpp"

namespace numcheck::core {

/// Bit pattern of the value in uint8 or int32 (two's complement), right-aligned.
[[nodiscard]] std::uint64_t encode_integer(double value, Dtype dtype, Rounding rounding) noexcept;
[[nodiscard]] double decode_integer(std::uint64_t bits, Dtype dtype) noexcept;

/// Bulk forms; `bytes` holds values.size() * storage_bytes.
void encode_integers(std::span<const double> values, Dtype dtype, std::span<std::byte> bytes, Rounding rounding);
void decode_integers(std::span<const std::byte> bytes, Dtype dtype, std::span<double> values);

}  // namespace numcheck::core
