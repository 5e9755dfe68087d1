#include "core/dtype.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace numcheck::core {
namespace {

constexpr double power_of_two(int exponent) {
  double result = 1;
  for (; exponent > 0; --exponent) {
    result *= 2;
  }
  for (; exponent < 0; ++exponent) {
    result /= 2;
  }
  return result;
}

constexpr DtypeInfo describe(Dtype dtype, std::string_view name, int storage_bytes, int exponent_bits,
                             int fraction_bits, int emin, double max_finite, bool has_infinity, bool has_nan) {
  return {dtype,
          name,
          storage_bytes,
          exponent_bits,
          fraction_bits,
          emin,
          max_finite,
          power_of_two(emin - fraction_bits),
          power_of_two(-(fraction_bits + 1)),
          has_infinity,
          has_nan};
}

constexpr std::array<DtypeInfo, 11> kDtypes = {
    describe(Dtype::fp64, "fp64", 8, 11, 52, -1022, std::numeric_limits<double>::max(), true, true),
    describe(Dtype::fp32, "fp32", 4, 8, 23, -126, std::numeric_limits<float>::max(), true, true),
    describe(Dtype::tf32, "tf32", 4, 8, 10, -126, (2 - power_of_two(-10)) * power_of_two(127), true, true),
    describe(Dtype::bf16, "bf16", 2, 8, 7, -126, (2 - power_of_two(-7)) * power_of_two(127), true, true),
    describe(Dtype::fp16, "fp16", 2, 5, 10, -14, 65504, true, true),
    describe(Dtype::fp8_e4m3, "fp8_e4m3", 1, 4, 3, -6, 448, false, true),
    describe(Dtype::fp8_e5m2, "fp8_e5m2", 1, 5, 2, -14, 57344, true, true),
    describe(Dtype::e8m0, "e8m0", 1, 8, 0, -127, power_of_two(127), false, true),
    describe(Dtype::fp4_e2m1, "fp4_e2m1", 1, 2, 1, 0, 6, false, false),
    describe(Dtype::uint8, "uint8", 1, 0, 7, 7, 255, false, false),
    describe(Dtype::int32, "int32", 4, 0, 30, 30, 2147483647.0, false, false),
};

}  // namespace

const DtypeInfo& dtype_info(Dtype dtype) noexcept {
  return kDtypes[static_cast<std::size_t>(dtype)];
}

std::span<const DtypeInfo> all_dtypes() noexcept {
  return kDtypes;
}

std::optional<Dtype> parse_dtype(std::string_view name) noexcept {
  const auto found = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& info) { return info.name == name; });
  return found == kDtypes.end() ? std::nullopt : std::optional(found->dtype);
}

double ulp(double value, Dtype dtype) noexcept {
  const DtypeInfo& info = dtype_info(dtype);
  if (std::isnan(value)) {
    return value;
  }
  // The power of two at or below a normal double is what its exponent bits are, by themselves.
  constexpr std::uint64_t kExponent = 0x7ff0'0000'0000'0000, kBias = 1023;
  const auto power = [](int exponent) {
    return std::bit_cast<double>((kBias + static_cast<std::uint64_t>(static_cast<std::int64_t>(exponent))) << 52);
  };
  const double magnitude = std::min(std::fabs(value), info.max_finite);
  const double normal = std::max(magnitude, power(info.emin));
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(normal) & kExponent) * power(-info.fraction_bits);
}

}  // namespace numcheck::core
