// Every format, rounding and overflow rule against the searching reference, on all codes, ties and their neighbours.
#include "core/codec.hpp"

#include <bit>
#include <cfloat>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/isa.hpp"
#include "tests/unit/core/codec_reference.hpp"

namespace numcheck::test {
namespace {

using core::Dtype;
using core::Overflow;
using core::Rounding;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr Rounding kRoundings[] = {Rounding::nearest_even, Rounding::nearest_away, Rounding::toward_zero,
                                   Rounding::toward_positive};
constexpr Overflow kOverflows[] = {Overflow::ieee, Overflow::saturate};
constexpr core::Isa kIsas[] = {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512};

void add_with_neighbours(double value, std::vector<double>& values) {
  for (const double each : {value, std::nextafter(value, -kInf), std::nextafter(value, kInf)}) {
    values.push_back(each);
    values.push_back(-each);
  }
}

std::vector<double> common_values() {
  std::vector<double> values = {kNan,      -kNan,    std::bit_cast<double>(0x7FF0000000000001),
                                0x1p-1074, DBL_MIN,  DBL_MAX,
                                0x1p-150,  0x1p-149, 0x1.8p-149,
                                FLT_MIN,   FLT_MAX};
  for (int exponent = -160; exponent <= 130; ++exponent) {
    add_with_neighbours(std::ldexp(1.0, exponent), values);
    add_with_neighbours(std::ldexp(1.5, exponent), values);
  }
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(-values[i]);
  }
  values.insert(values.end(), {0.0, -0.0, kInf, -kInf});
  return values;
}

/// All values, midpoints and quarter points of a narrow format (a sample of a wide one's), with both neighbours.
std::vector<double> values_around_codes(const ReferenceFormat& format) {
  std::vector<double> values = common_values();
  const std::uint64_t step = format.max_code > 0xFFFF ? (format.max_code >> 14) - 1 : 1;
  for (std::uint64_t code = 0; code <= format.max_code; code += step) {
    const double low = reference_value(format, code);
    const double gap = reference_value(format, code + 1) - low;
    for (const double part : {0.0, 0.25, 0.5, 0.75}) {
      add_with_neighbours(low + part * gap, values);
    }
  }
  add_with_neighbours(reference_value(format, format.max_code + 1), values);
  return values;
}

std::string describe(const ReferenceFormat& format, double value, Overflow overflow, Rounding rounding) {
  char text[160];
  std::snprintf(text, sizeof(text), "%s of %a, overflow %d, rounding %d",
                std::string(core::dtype_info(format.dtype).name).c_str(), value, static_cast<int>(overflow),
                static_cast<int>(rounding));
  return text;
}

class Codec : public testing::TestWithParam<ReferenceFormat> {};
INSTANTIATE_TEST_SUITE_P(Formats, Codec, testing::ValuesIn(kReferenceFormats),
                         [](const auto& given) { return std::string(core::dtype_info(given.param.dtype).name); });

TEST_P(Codec, encodes_like_the_search) {
  const ReferenceFormat& format = GetParam();
  const std::vector<double> values = values_around_codes(format);
  for (const Overflow overflow : kOverflows) {
    for (const Rounding rounding : kRoundings) {
      for (const double value : values) {
        const std::uint64_t expected = reference_encode(value, format.dtype, overflow, rounding);
        ASSERT_EQ(core::encode(value, format.dtype, overflow, rounding), expected)
            << describe(format, value, overflow, rounding);
        ASSERT_EQ(std::bit_cast<std::uint64_t>(core::round_to(value, format.dtype, overflow, rounding)),
                  std::bit_cast<std::uint64_t>(core::decode(expected, format.dtype)))
            << describe(format, value, overflow, rounding);
      }
    }
  }
}

TEST_P(Codec, decodes_every_code) {
  const ReferenceFormat& format = GetParam();
  const std::uint64_t step = format.max_code > 0xFFFF ? 4099 : 1;
  for (std::uint64_t code = 0; code <= format.max_code; code += step) {
    const std::uint64_t word = code << format.word_shift;
    const double value = reference_value(format, code);
    ASSERT_EQ(core::decode(word, format.dtype), value) << code;
    ASSERT_EQ(core::encode(value, format.dtype), word) << code;
    if (format.dtype == Dtype::e8m0) {
      continue;
    }
    const std::uint64_t negative = word | std::uint64_t{1}
                                              << (format.exponent_bits + format.fraction_bits + format.word_shift);
    ASSERT_EQ(core::decode(negative, format.dtype), -value) << code;
    ASSERT_TRUE(std::signbit(core::decode(negative, format.dtype))) << code;
    ASSERT_EQ(core::encode(-value, format.dtype), negative) << code;
  }
}

TEST_P(Codec, bulk_equals_scalar_on_every_set) {
  const ReferenceFormat& format = GetParam();
  const core::DtypeInfo& info = core::dtype_info(format.dtype);
  const auto width = static_cast<std::size_t>(info.storage_bytes);
  const std::vector<double> values = values_around_codes(format);
  std::vector<std::byte> bytes(values.size() * width + 1);
  const std::span<std::byte> unaligned = std::span(bytes).subspan(1);
  for (const core::Isa isa : kIsas) {
    if (core::force_isa(isa) != isa) {
      continue;
    }
    for (const Overflow overflow : kOverflows) {
      for (const Rounding rounding : kRoundings) {
        core::encode(values, format.dtype, unaligned, overflow, rounding);
        for (std::size_t i = 0; i < values.size(); ++i) {
          std::uint64_t word = 0;
          std::memcpy(&word, unaligned.data() + i * width, width);
          ASSERT_EQ(word, core::encode(values[i], format.dtype, overflow, rounding))
              << core::isa_name(isa) << ' ' << describe(format, values[i], overflow, rounding);
        }
      }
    }
  }
}

/// All 2^8 or 2^16 words, and a sample of the 2^32.
TEST_P(Codec, bulk_decode_equals_scalar_on_every_set) {
  const ReferenceFormat& format = GetParam();
  const auto width = static_cast<std::size_t>(core::dtype_info(format.dtype).storage_bytes);
  const std::size_t words = width == 1 ? 0x100 : 0x10000;
  const std::uint32_t step = width == 4 ? 65521 : 1;
  std::vector<std::byte> bytes(words * width + 1);
  for (std::size_t i = 0; i < words; ++i) {
    const auto word = static_cast<std::uint32_t>(i) * step;
    std::memcpy(bytes.data() + 1 + i * width, &word, width);
  }
  std::vector<double> values(words);
  for (const core::Isa isa : kIsas) {
    if (core::force_isa(isa) != isa) {
      continue;
    }
    core::decode(std::span(bytes).subspan(1), format.dtype, values);
    for (std::size_t i = 0; i < words; ++i) {
      const double expected = core::decode(static_cast<std::uint32_t>(i) * step, format.dtype);
      ASSERT_EQ(std::bit_cast<std::uint64_t>(values[i]), std::bit_cast<std::uint64_t>(expected))
          << core::isa_name(isa) << " word " << i * step;
    }
  }
}

TEST_P(Codec, narrow_fp32_numbers_are_rounded_on_every_set) {
  const ReferenceFormat& format = GetParam();
  std::vector<double> values = values_around_codes(format);
  std::vector<std::byte> fp32(values.size() * sizeof(float));
  core::encode(values, Dtype::fp32, fp32);
  core::decode(fp32, Dtype::fp32, values);
  const auto width = static_cast<std::size_t>(core::dtype_info(format.dtype).storage_bytes);
  std::vector<std::byte> expected(values.size() * width), narrow(expected.size() + 1);
  const std::span<std::byte> unaligned = std::span(narrow).subspan(1);
  for (const core::Isa isa : kIsas) {
    if (core::force_isa(isa) != isa) {
      continue;
    }
    for (const Overflow overflow : kOverflows) {
      core::encode(values, format.dtype, expected, overflow);
      core::narrow(fp32, format.dtype, unaligned, overflow);
      EXPECT_TRUE(std::ranges::equal(expected, unaligned)) << static_cast<int>(isa);
    }
  }
}

TEST_P(Codec, every_length_is_complete) {
  const Dtype dtype = GetParam().dtype;
  const auto width = static_cast<std::size_t>(core::dtype_info(dtype).storage_bytes);
  const std::vector<double> values = common_values();
  for (std::size_t count = 0; count <= 40; ++count) {
    std::vector<std::byte> bytes(count * width + 1, std::byte{0xA5});
    core::encode(std::span(values).first(count), dtype, std::span(bytes).first(count * width));
    std::vector<double> decoded(count + 1, 0.125);
    core::decode(std::span(bytes).first(count * width), dtype, std::span(decoded).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      const double expected = core::round_to(values[i], dtype);
      ASSERT_TRUE(decoded[i] == expected || (std::isnan(decoded[i]) && std::isnan(expected))) << count << ' ' << i;
    }
    ASSERT_EQ(bytes.back(), std::byte{0xA5});
    ASSERT_EQ(decoded.back(), 0.125);
  }
}

TEST(CodecFp64, keeps_values_and_cleans_nan) {
  for (const double value : {0.0, -0.0, 1.0 / 3, DBL_MAX, DBL_TRUE_MIN, kInf, -kInf}) {
    EXPECT_EQ(core::encode(value, Dtype::fp64), std::bit_cast<std::uint64_t>(value));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(core::round_to(value, Dtype::fp64)), std::bit_cast<std::uint64_t>(value));
  }
  EXPECT_EQ(core::encode(-kNan, Dtype::fp64), 0x7FF8000000000000);
  EXPECT_EQ(core::round_to(-kInf, Dtype::fp64, Overflow::saturate), -DBL_MAX);
  const std::vector<double> values = {1.5, -kInf, -kNan};
  std::vector<std::byte> bytes(24);
  core::encode(values, Dtype::fp64, bytes, Overflow::saturate);
  std::vector<double> decoded(3);
  core::decode(bytes, Dtype::fp64, decoded);
  EXPECT_EQ(decoded[0], 1.5);
  EXPECT_EQ(decoded[1], -DBL_MAX);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(decoded[2]), 0x7FF8000000000000);
}

TEST(CodecFp32, nearest_even_is_the_processors_conversion) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isnan(value)) {
      ASSERT_EQ(core::encode(value, Dtype::fp32), std::bit_cast<std::uint32_t>(static_cast<float>(value))) << value;
    }
  }
}

/// Decisions published in the PTX ISA, OCP and CUDA documents, worked out by hand.
TEST(CodecKnownValues, fp8_and_scales) {
  const auto e4m3 = [](double x, Overflow overflow = Overflow::ieee) {
    return core::encode(x, Dtype::fp8_e4m3, overflow);
  };
  EXPECT_EQ(e4m3(448), 0x7E);
  EXPECT_EQ(e4m3(464), 0x7E);
  EXPECT_EQ(e4m3(464.00003), 0x7F);
  EXPECT_EQ(e4m3(464.00003, Overflow::saturate), 0x7E);
  EXPECT_EQ(e4m3(-kInf, Overflow::saturate), 0xFE);
  EXPECT_EQ(e4m3(-kInf), 0xFF);
  EXPECT_EQ(e4m3(-kNan, Overflow::saturate), 0x7F);
  EXPECT_EQ(e4m3(-0.0), 0x80);
  EXPECT_EQ(e4m3(0x1p-10), 0x00);
  EXPECT_EQ(e4m3(1.5 * 0x1p-10), 0x01);
  EXPECT_EQ(e4m3(3 * 0x1p-10), 0x02);
  const auto e5m2 = [](double x, Overflow overflow = Overflow::ieee) {
    return core::encode(x, Dtype::fp8_e5m2, overflow);
  };
  EXPECT_EQ(e5m2(61440), 0x7C);
  EXPECT_EQ(e5m2(61440, Overflow::saturate), 0x7B);
  EXPECT_EQ(e5m2(std::nextafter(61440.0, 0.0)), 0x7B);
  const auto up = [](double x, Overflow overflow = Overflow::saturate) {
    return core::encode(x, Dtype::e8m0, overflow, Rounding::toward_positive);
  };
  EXPECT_EQ(up(0), 0x00);
  EXPECT_EQ(up(-0.0), 0x00);
  EXPECT_EQ(up(1), 0x7F);
  EXPECT_EQ(up(1.0000001), 0x80);
  EXPECT_EQ(up(-1.0000001), 0x80);
  EXPECT_EQ(up(kInf), 0xFE);
  EXPECT_EQ(up(kInf, Overflow::ieee), 0xFF);
  EXPECT_EQ(up(FLT_MAX), 0xFE);
  EXPECT_EQ(up(FLT_MAX, Overflow::ieee), 0xFF);
  EXPECT_EQ(up(kNan), 0xFF);
  EXPECT_EQ(core::decode(0x00, Dtype::e8m0), 0x1p-127);
  EXPECT_TRUE(std::isnan(core::decode(0xFF, Dtype::e8m0)));
  const double decision_points[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};
  const std::uint64_t even_codes[] = {0, 2, 2, 4, 4, 6, 6};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(core::encode(decision_points[i], Dtype::fp4_e2m1), even_codes[i]);
  }
  EXPECT_EQ(core::encode(-kInf, Dtype::fp4_e2m1), 0xF);
  EXPECT_EQ(core::encode(-kNan, Dtype::fp4_e2m1), 0x7);
}

/// double -> float -> bf16 would round twice here.
TEST(CodecKnownValues, rounds_once) {
  const double just_above_tie = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(core::encode(just_above_tie, Dtype::bf16), 0x3F81);
  EXPECT_EQ(core::encode(static_cast<double>(static_cast<float>(just_above_tie)), Dtype::bf16), 0x3F80);
}

TEST(CodecErrors, sizes_must_match) {
  std::vector<double> values(3);
  std::vector<std::byte> bytes(5);
  EXPECT_THROW(core::encode(values, Dtype::bf16, bytes), core::InternalError);
  EXPECT_THROW(core::decode(bytes, Dtype::bf16, values), core::InternalError);
}

}  // namespace
}  // namespace numcheck::test
