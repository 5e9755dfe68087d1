// The codecs against the host functions of the CUDA headers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>
#if __has_include(<cuda_fp4.h>)
#include <cuda_fp4.h>
#endif

#include <bit>
#include <cstring>
#include <vector>

#include "core/parallel.hpp"
#include "tests/unit/core/codec_reference.hpp"

namespace numcheck::test {
namespace {

using core::Dtype;
using core::Overflow;
using core::Rounding;

constexpr std::uint32_t kStep = 101;  // of the sweeps over the 2^32 FP32 patterns: 42 million numbers

template <class Bits, class T>
Bits bits_of(const T& value) {
  static_assert(sizeof(Bits) == sizeof(T));
  Bits bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Doubles at and around every tie and value of a format; both signs.
std::vector<double> doubles_around(Dtype dtype) {
  const ReferenceFormat& format = reference_format(dtype);
  std::vector<double> values;
  for (std::uint64_t code = 0; code <= format.max_code; ++code) {
    const double low = reference_value(format, code);
    const double tie = low + (reference_value(format, code + 1) - low) / 2;
    for (const double centre : {low, tie}) {
      for (const double value : {centre, std::nextafter(centre, 0.0), std::nextafter(centre, 1e300)}) {
        values.push_back(value);
        values.push_back(-value);
      }
    }
  }
  return values;
}

/// First FP32 pattern on which the two functions differ, else -1. `theirs` and `ours` take a float.
template <class Theirs, class Ours>
std::int64_t first_difference(const Theirs& theirs, const Ours& ours) {
  constexpr std::size_t kParts = 64;
  std::vector<std::int64_t> wrong(kParts, -1);
  core::parallel_for(kParts, [&](std::size_t part) {
    const std::uint64_t size = (std::uint64_t{1} << 32) / kParts;
    for (std::uint64_t at = part * size; at < (part + 1) * size; at += kStep) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(at));
      if (theirs(value) != ours(value) && wrong[part] < 0) {
        wrong[part] = static_cast<std::int64_t>(at);
      }
    }
  });
  for (const std::int64_t each : wrong) {
    if (each >= 0) {
      return each;
    }
  }
  return -1;
}

std::uint64_t ours(float value, Dtype dtype, Overflow overflow = Overflow::ieee,
                   Rounding rounding = Rounding::nearest_even) {
  return core::encode(static_cast<double>(value), dtype, overflow, rounding);
}

struct Fp8Case {
  Dtype dtype;
  __nv_fp8_interpretation_t interpretation;
  Overflow overflow;
  __nv_saturation_t saturation;
};

const Fp8Case kFp8Cases[] = {
    {Dtype::fp8_e4m3, __NV_E4M3, Overflow::ieee, __NV_NOSAT},
    {Dtype::fp8_e4m3, __NV_E4M3, Overflow::saturate, __NV_SATFINITE},
    {Dtype::fp8_e5m2, __NV_E5M2, Overflow::ieee, __NV_NOSAT},
    {Dtype::fp8_e5m2, __NV_E5M2, Overflow::saturate, __NV_SATFINITE},
};

/// The header keeps some payload bits in E5M2 NaNs where the instruction gives 0x7F.
std::uint64_t canonical(std::uint64_t code, Dtype dtype) {
  return dtype == Dtype::fp8_e5m2 && (code & 0x7F) > 0x7C ? 0x7F : code;
}

TEST(CodecAgainstCuda, fp8_from_float_and_double) {
  for (const Fp8Case& each : kFp8Cases) {
    EXPECT_EQ(first_difference(
                  [&](float x) {
                    return canonical(__nv_cvt_float_to_fp8(x, each.saturation, each.interpretation), each.dtype);
                  },
                  [&](float x) { return ours(x, each.dtype, each.overflow); }),
              -1);
    for (const double value : doubles_around(each.dtype)) {
      ASSERT_EQ(__nv_cvt_double_to_fp8(value, each.saturation, each.interpretation),
                core::encode(value, each.dtype, each.overflow))
          << value;
    }
  }
}

TEST(CodecAgainstCuda, half_and_bfloat16_from_float_and_double) {
  EXPECT_EQ(first_difference([](float x) { return bits_of<std::uint16_t>(__float2half_rn(x)); },
                             [](float x) { return ours(x, Dtype::fp16); }),
            -1);
  EXPECT_EQ(first_difference([](float x) { return bits_of<std::uint16_t>(__float2bfloat16_rn(x)); },
                             [](float x) { return ours(x, Dtype::bf16); }),
            -1);
  for (const double value : doubles_around(Dtype::fp16)) {
    ASSERT_EQ(bits_of<std::uint16_t>(__double2half(value)), core::encode(value, Dtype::fp16)) << value;
  }
  for (const double value : doubles_around(Dtype::bf16)) {
    ASSERT_EQ(bits_of<std::uint16_t>(__double2bfloat16(value)), core::encode(value, Dtype::bf16)) << value;
  }
}

TEST(CodecAgainstCuda, directed_roundings) {
  EXPECT_EQ(first_difference([](float x) { return bits_of<std::uint16_t>(__float2half_rz(x)); },
                             [](float x) { return ours(x, Dtype::fp16, Overflow::ieee, Rounding::toward_zero); }),
            -1);
  EXPECT_EQ(first_difference([](float x) { return bits_of<std::uint16_t>(__float2half_ru(x)); },
                             [](float x) { return ours(x, Dtype::fp16, Overflow::ieee, Rounding::toward_positive); }),
            -1);
  EXPECT_EQ(first_difference([](float x) { return bits_of<std::uint16_t>(__float2bfloat16_rz(x)); },
                             [](float x) { return ours(x, Dtype::bf16, Overflow::ieee, Rounding::toward_zero); }),
            -1);
  EXPECT_EQ(first_difference([](float x) { return bits_of<std::uint16_t>(__float2bfloat16_ru(x)); },
                             [](float x) { return ours(x, Dtype::bf16, Overflow::ieee, Rounding::toward_positive); }),
            -1);
}

TEST(CodecAgainstCuda, decodes_every_code) {
  const auto same = [](float theirs, double value) {
    return (std::isnan(theirs) && std::isnan(value)) || static_cast<double>(theirs) == value;
  };
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<unsigned short>(code);
    ASSERT_TRUE(same(__half2float(__half(__half_raw{bits})), core::decode(code, Dtype::fp16))) << code;
    ASSERT_TRUE(same(__bfloat162float(__nv_bfloat16(__nv_bfloat16_raw{bits})), core::decode(code, Dtype::bf16)))
        << code;
  }
  for (const Fp8Case& each : kFp8Cases) {
    for (std::uint32_t code = 0; code < 0x100; ++code) {
      const __half_raw half = __nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(code), each.interpretation);
      ASSERT_TRUE(same(__half2float(__half(half)), core::decode(code, each.dtype))) << code;
    }
  }
}

#if __has_include(<cuda_fp4.h>)
TEST(CodecAgainstCuda, fp4_and_e8m0) {
  EXPECT_EQ(first_difference([](float x) { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); },
                             [](float x) { return ours(x, Dtype::fp4_e2m1); }),
            -1);
  for (const double value : doubles_around(Dtype::fp4_e2m1)) {
    ASSERT_EQ(__nv_cvt_double_to_fp4(value, __NV_E2M1, cudaRoundNearest), core::encode(value, Dtype::fp4_e2m1))
        << value;
  }
  for (const bool saturates : {false, true}) {
    const __nv_saturation_t saturation = saturates ? __NV_SATFINITE : __NV_NOSAT;
    const Overflow overflow = saturates ? Overflow::saturate : Overflow::ieee;
    EXPECT_EQ(first_difference([&](float x) { return __nv_cvt_float_to_e8m0(x, saturation, cudaRoundPosInf); },
                               [&](float x) { return ours(x, Dtype::e8m0, overflow, Rounding::toward_positive); }),
              -1);
    EXPECT_EQ(first_difference([&](float x) { return __nv_cvt_float_to_e8m0(x, saturation, cudaRoundZero); },
                               [&](float x) { return ours(x, Dtype::e8m0, overflow, Rounding::toward_zero); }),
              -1);
  }
}
#endif

}  // namespace
}  // namespace numcheck::test
