#include "data/generators.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/isa.hpp"
#include "data/generate_range.hpp"

namespace numcheck::data {
namespace {

constexpr std::size_t kPiece = 4 * kGroup;  // elements whose words are held at once

/// Calls body(index within out, word) for every element, with the words of one draw.
template <class Body>
void for_each_word(const WordStream& stream, std::uint64_t first, std::size_t count, const Body& body) {
  std::array<std::uint32_t, kPiece> words;
  for (std::size_t begin = 0; begin < count;) {
    // Pieces end at multiples of their size, so that all but the first start with a group.
    const std::size_t size = std::min(count - begin, kPiece - static_cast<std::size_t>((first + begin) % kPiece));
    generate_words(stream, first + begin, std::span(words).first(size));
    for (std::size_t i = 0; i < size; ++i) {
      body(begin + i, words[i]);
    }
    begin += size;
  }
}

void fill_normal(double mean, double sigma, const core::StreamId& stream, std::uint64_t first, std::span<double> out) {
  fill_range(first, out, [&](std::uint64_t group, std::size_t groups, double* target) {
    generator_kernels().normal(word_stream(stream), group, groups, mean, sigma, target);
  });
}

void fill_uniform(double low, double high, double offset, const core::StreamId& stream, std::uint64_t first,
                  std::span<double> out) {
  fill_range(first, out, [&](std::uint64_t group, std::size_t groups, double* target) {
    generator_kernels().uniform(word_stream(stream), group, groups, low, high, offset, target);
  });
}

double fp32(double value) {
  return static_cast<double>(static_cast<float>(value));
}

std::uint64_t threshold(double fraction) {
  return static_cast<std::uint64_t>(fraction * 0x1p32);
}

double special_value(std::uint32_t word) {
  using Fp32 = std::numeric_limits<float>;
  constexpr float kLargestSubnormal = 0x1.fffffcp-127F;
  constexpr std::array<float, 13> kValues = {
      Fp32::quiet_NaN(),   Fp32::infinity(),  -Fp32::infinity(),  0.0F,        -0.0F,        Fp32::denorm_min(),
      -Fp32::denorm_min(), kLargestSubnormal, -kLargestSubnormal, Fp32::min(), -Fp32::min(), Fp32::max(),
      -Fp32::max()};
  const auto kind = static_cast<std::size_t>((std::uint64_t{word} * (kValues.size() + 1)) >> 32);
  if (kind < kValues.size()) {
    return static_cast<double>(kValues[kind]);
  }
  return static_cast<double>(std::bit_cast<float>((word & 0x7FFFFF) | (word & 0x800000) << 8));
}

/// The fraction, and half a unit below it, are placed directly into the double's bits.
double tie(std::uint32_t word, int fraction_bits) {
  const std::uint64_t fraction = word & ((1U << fraction_bits) - 1);
  const std::uint64_t exponent = 1023 - 3 + (word >> 16) % 7;
  const std::uint64_t sign = word >> 31;
  return std::bit_cast<double>(sign << 63 | exponent << 52 | (2 * fraction + 1) << (51 - fraction_bits));
}

}  // namespace

const GeneratorKernels& generator_kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(generator_kernels)();
}

void generate_normal(const NormalParams& params, const core::StreamId& stream, std::uint64_t first,
                     std::span<double> out) {
  fill_normal(0, params.sigma, stream, first, out);
}

void generate_positive(const NoParams& /*params*/, const core::StreamId& stream, std::uint64_t first,
                       std::span<double> out) {
  fill_uniform(0, 1, 1, stream, first, out);
}

void generate_uniform(const UniformParams& params, const core::StreamId& stream, std::uint64_t first,
                      std::span<double> out) {
  fill_uniform(params.low, params.high, 0.5, stream, first, out);
}

void generate_constant(const ConstantParams& params, const core::StreamId& /*stream*/, std::uint64_t /*first*/,
                       std::span<double> out) {
  std::fill(out.begin(), out.end(), fp32(params.value));
}

void generate_large_mean(const LargeMeanParams& params, const core::StreamId& stream, std::uint64_t first,
                         std::span<double> out) {
  fill_normal(params.mean, params.sigma, stream, first, out);
}

void generate_log_uniform(const LogUniformParams& params, const core::StreamId& stream, std::uint64_t first,
                          std::span<double> out) {
  fill_range(first, out, [&](std::uint64_t group, std::size_t groups, double* target) {
    generator_kernels().power(word_stream(stream), group, groups, params.low, params.high, params.with_sign, target);
  });
}

void generate_outliers(const OutlierParams& params, const core::StreamId& stream, std::uint64_t first,
                       std::span<double> out) {
  fill_normal(0, 1, stream, first, out);
  const std::uint64_t limit = threshold(params.fraction);
  for_each_word(word_stream(stream, 1), first, out.size(), [&](std::size_t i, std::uint32_t word) {
    out[i] = word < limit ? fp32(out[i] * params.scale) : out[i];
  });
}

void generate_integers(const ExactParams& params, const core::StreamId& stream, std::uint64_t first,
                       std::span<double> out) {
  const auto max = static_cast<std::uint64_t>(params.max);
  for_each_word(word_stream(stream), first, out.size(),
                [&](std::size_t i, std::uint32_t word) { out[i] = signed_integer(word, max); });
}

void generate_signs(const NoParams& /*params*/, const core::StreamId& stream, std::uint64_t first,
                    std::span<double> out) {
  generate_integers({.max = 1}, stream, first, out);
}

void generate_ties(const TieParams& params, const core::StreamId& stream, std::uint64_t first, std::span<double> out) {
  using core::Dtype;
  constexpr std::array kFormats = {Dtype::tf32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3, Dtype::fp8_e5m2};
  const auto given = core::parse_dtype(params.format);
  std::array<int, kFormats.size()> fraction_bits{};
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    fraction_bits[i] = core::dtype_info(given.value_or(kFormats[i])).fraction_bits;
  }
  for_each_word(word_stream(stream), first, out.size(), [&](std::size_t i, std::uint32_t word) {
    out[i] = tie(word, fraction_bits[(word >> 10) % kFormats.size()]);
  });
}

void generate_specials(const SpecialParams& params, const core::StreamId& stream, std::uint64_t first,
                       std::span<double> out) {
  fill_normal(0, 1, stream, first, out);
  const std::uint64_t limit = threshold(params.fraction);
  std::array<std::uint32_t, 1> kind{};
  for_each_word(word_stream(stream, 1), first, out.size(), [&](std::size_t i, std::uint32_t word) {
    if (word < limit) {
      generate_words(word_stream(stream, 2), first + i, kind);
      out[i] = special_value(kind[0]);
    }
  });
}

void generate_structured(const StructuredParams& params, const core::StreamId& stream, std::uint64_t first,
                         std::span<double> out) {
  fill_uniform(0.5, 1, 0, stream, first, out);
  const auto period = static_cast<std::uint64_t>(params.period);
  for (std::size_t i = 0; i < out.size();) {
    const std::uint64_t run = (first + i) / period;
    const std::uint64_t left = period - (first + i) % period;
    const auto end = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), i + left));
    for (; i < end; ++i) {
      out[i] = (run & 1) != 0 ? -out[i] : out[i];
    }
  }
}

void generate_patterns(const PatternParams& params, const core::StreamId& /*stream*/, std::uint64_t first,
                       std::span<double> out) {
  const core::Dtype format = core::parse_dtype(params.format).value_or(core::Dtype::bf16);
  const std::uint64_t mask = core::dtype_info(format).storage_bytes == 2 ? 0xFFFF : 0xFFFF'FFFF;
  const auto stride = static_cast<std::uint64_t>(params.stride);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = core::decode((first + i) * stride & mask, format);
  }
}

}  // namespace numcheck::data
