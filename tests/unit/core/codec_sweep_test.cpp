// A dense sweep of the 2^32 FP32 numbers: between two neighbours of a format all numbers round alike, so the sweep
// visits the numbers in order and tracks the interval. TE_NUMCHECK_SWEEP_STEP=1 in the environment takes all of them.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/parallel.hpp"
#include "tests/unit/core/codec_reference.hpp"

namespace numcheck::test {
namespace {

using core::Dtype;
using core::Overflow;
using core::Rounding;

constexpr std::uint32_t kInfinity = 0x7F800000;

std::uint32_t sweep_step() {
  const char* given = std::getenv("TE_NUMCHECK_SWEEP_STEP");
  return given == nullptr ? 101 : static_cast<std::uint32_t>(std::max(1, std::atoi(given)));
}

/// The nearest-even code of magnitudes that come in ascending order.
class Walker {
 public:
  explicit Walker(const ReferenceFormat& format, double start) : format_(format), code_(code_below(format, start)) {
    move_to(code_);
  }

  std::uint64_t code_of(double magnitude) {
    while (code_ <= format_.max_code && magnitude >= high_) {
      move_to(code_ + 1);
    }
    if (code_ > format_.max_code) {
      return format_.max_code + 1;
    }
    return magnitude > tie_ || (magnitude == tie_ && (code_ & 1) != 0) ? code_ + 1 : code_;
  }

 private:
  void move_to(std::uint64_t code) {
    code_ = code;
    high_ = reference_value(format_, code + 1);
    const double low = reference_value(format_, code);
    tie_ = low + (high_ - low) / 2;
  }

  const ReferenceFormat& format_;
  std::uint64_t code_;
  double high_ = 0;
  double tie_ = 0;
};

/// Compares numbers [begin, end) of one sign with step `step`; returns the first wrong one or 2^64 - 1.
std::uint64_t first_wrong(const ReferenceFormat& format, std::uint32_t begin, std::uint32_t end, std::uint32_t step,
                          bool negative) {
  constexpr std::size_t kBatch = 1 << 14;
  const auto width = static_cast<std::size_t>(core::dtype_info(format.dtype).storage_bytes);
  std::vector<double> values(kBatch);
  std::vector<std::byte> bytes(kBatch * width);
  Walker walker(format, static_cast<double>(std::bit_cast<float>(begin)));
  const bool has_sign = format.dtype != Dtype::e8m0;
  const std::uint64_t sign = std::uint64_t{negative && has_sign} << (format.exponent_bits + format.fraction_bits);
  for (std::uint64_t at = begin; at < end;) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kBatch, (end - at + step - 1) / step));
    for (std::size_t i = 0; i < count; ++i) {
      const auto magnitude = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(at + i * step)));
      values[i] = negative ? -magnitude : magnitude;
    }
    core::encode(std::span(values).first(count), format.dtype, std::span(bytes).first(count * width));
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t code = walker.code_of(negative ? -values[i] : values[i]);
      code = code > format.max_code ? format.overflow_code : code;
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i * width, width);
      if (word != (code | sign) << format.word_shift) {
        return at + i * step;
      }
    }
    at += std::uint64_t{count} * step;
  }
  return ~std::uint64_t{0};
}

class CodecSweep : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Formats, CodecSweep,
                         testing::Values(Dtype::tf32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3, Dtype::fp8_e5m2,
                                         Dtype::e8m0, Dtype::fp4_e2m1),
                         [](const auto& given) { return std::string(core::dtype_info(given.param).name); });

TEST_P(CodecSweep, nearest_even_of_fp32_numbers) {
  const ReferenceFormat& format = reference_format(GetParam());
  const std::uint32_t step = sweep_step();
  constexpr std::size_t kParts = 64;
  std::vector<std::uint64_t> wrong(2 * kParts);
  core::parallel_for(2 * kParts, [&](std::size_t part) {
    const std::uint32_t size = kInfinity / kParts;
    const auto begin = static_cast<std::uint32_t>(part / 2) * size;
    wrong[part] = first_wrong(format, begin, begin + size, step, part % 2 != 0);
  });
  for (const std::uint64_t pattern : wrong) {
    ASSERT_EQ(pattern, ~std::uint64_t{0}) << std::hex << pattern;
  }
}

/// Every FP32 number at or next to a tie or a value of the format, both signs.
TEST_P(CodecSweep, ties_and_neighbours) {
  const ReferenceFormat& format = reference_format(GetParam());
  std::vector<double> values;
  for (std::uint64_t code = 0; code <= format.max_code; ++code) {
    const double low = reference_value(format, code);
    const double tie = low + (reference_value(format, code + 1) - low) / 2;
    for (const double centre : {low, tie}) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(centre));
      for (std::uint32_t near = bits == 0 ? 0 : bits - 1; near <= bits + 1 && near < kInfinity; ++near) {
        values.push_back(static_cast<double>(std::bit_cast<float>(near)));
        values.push_back(-values.back());
      }
    }
  }
  const auto width = static_cast<std::size_t>(core::dtype_info(format.dtype).storage_bytes);
  std::vector<std::byte> bytes(values.size() * width);
  for (const Overflow overflow : {Overflow::ieee, Overflow::saturate}) {
    core::encode(values, format.dtype, bytes, overflow);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i * width, width);
      ASSERT_EQ(word, reference_encode(values[i], format.dtype, overflow, Rounding::nearest_even)) << values[i];
    }
  }
}

}  // namespace
}  // namespace numcheck::test
