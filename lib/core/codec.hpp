// Conversions between double and every storage format, each in ONE rounding (no detour through float or fp16).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.hpp"

namespace numcheck::core {

enum class Rounding : std::uint8_t { nearest_even, nearest_away, toward_zero, toward_positive };

/// What happens beyond the largest finite value.
/// saturate: clamp finite and infinite values to +-max (CUDA __NV_SATFINITE, `cvt...satfinite`); NaN stays NaN.
/// ieee:     infinity, or NaN where the format has no infinity (CUDA __NV_NOSAT).
enum class Overflow : std::uint8_t { ieee, saturate };

/// Bit pattern of `value` in `dtype`, right-aligned; for tf32 the fp32 word that holds it (its low 13 bits are zero).
/// NaN becomes the format's canonical positive NaN (E2M1: +6). E8M0 takes the magnitude; anything below 2^-127 becomes
/// 2^-127. E2M1 always saturates. So do integers, and their NaN becomes 0.
[[nodiscard]] std::uint64_t encode(double value, Dtype dtype, Overflow overflow = Overflow::ieee,
                                   Rounding rounding = Rounding::nearest_even) noexcept;

/// Value of a bit pattern; every format's values are exact in double. A tf32 word is read as the fp32 word that it is.
/// NaNs become the positive quiet one (fp64: unchanged).
[[nodiscard]] double decode(std::uint64_t bits, Dtype dtype) noexcept;

/// decode(encode(value)).
[[nodiscard]] double round_to(double value, Dtype dtype, Overflow overflow = Overflow::ieee,
                              Rounding rounding = Rounding::nearest_even) noexcept;

/// Bulk forms, vectorised by instruction set, sequential (callers parallelise). `bytes` holds
/// values.size() * storage_bytes. tf32 is stored as fp32 words (its low 13 bits are zero after encode).
void encode(std::span<const double> values, Dtype dtype, std::span<std::byte> bytes, Overflow overflow = Overflow::ieee,
            Rounding rounding = Rounding::nearest_even);
void decode(std::span<const std::byte> bytes, Dtype dtype, std::span<double> values);

/// encode(decode(fp32)): FP32 numbers in a narrower format, to nearest even.
void narrow(std::span<const std::byte> fp32, Dtype dtype, std::span<std::byte> bytes,
            Overflow overflow = Overflow::ieee);

}  // namespace numcheck::core
