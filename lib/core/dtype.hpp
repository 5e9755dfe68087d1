// The format table: every number format that the tool stores, multiplies or rounds to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace numcheck::core {

/// Number formats. Enumerators are spelled as in plans and reports.
/// The integer formats are fixed-point formats whose spacing is 1 everywhere: masks, maps and indices.
enum class Dtype : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8_e4m3, fp8_e5m2, e8m0, fp4_e2m1, uint8, int32 };

/// Constants of one format. A finite value is s * 2^(e - fraction_bits) with |s| < 2^(fraction_bits + 1), e >= emin.
/// Sources: IEEE 754-2019; OCP OFP8 1.0 (E4M3, E5M2); OCP MX 1.0 (E8M0, E2M1); CUDA PTX ISA (TF32).
struct DtypeInfo {
  Dtype dtype;
  std::string_view name;
  int storage_bytes;  ///< bytes of one stored element (tf32 is stored as fp32; fp4_e2m1: one element per byte here)
  int exponent_bits;
  int fraction_bits;  ///< stored fraction bits m; the significand has m + 1 bits
  int emin;           ///< exponent of the smallest normal
  double max_finite;
  double min_subnormal;  ///< spacing in the subnormal range: 2^(emin - fraction_bits)
  double unit_roundoff;  ///< u = 2^-(fraction_bits + 1)
  bool has_infinity;
  bool has_nan;
};

/// Constants of a format; total over the enumeration.
[[nodiscard]] const DtypeInfo& dtype_info(Dtype dtype) noexcept;

/// All formats in enumeration order.
[[nodiscard]] std::span<const DtypeInfo> all_dtypes() noexcept;

/// True for uint8 and int32.
[[nodiscard]] constexpr bool is_integer(Dtype dtype) noexcept {
  return dtype == Dtype::uint8 || dtype == Dtype::int32;
}

[[nodiscard]] constexpr bool is_fp8(Dtype dtype) noexcept {
  return dtype == Dtype::fp8_e4m3 || dtype == Dtype::fp8_e5m2;
}

/// The format of that name; nothing if there is none.
[[nodiscard]] std::optional<Dtype> parse_dtype(std::string_view name) noexcept;

/// Spacing of the format's numbers at |value|: 2^(max(floor(log2|value|), emin) - m). Beyond the largest finite value
/// it stays that of the top binade.
[[nodiscard]] double ulp(double value, Dtype dtype) noexcept;

}  // namespace numcheck::core
