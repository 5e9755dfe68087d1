// Compiled once per instruction set: NUMCHECK_ISA is the namespace. Every operation is one that IEEE 754 rounds
// correctly (+ - * / sqrt, conversion to FP32), in an order fixed by the source, so all sets produce the same bits.
#include "data/generator_kernels.hpp"

#include "data/generator_lanes.hpp"

namespace numcheck::data::NUMCHECK_ISA {
namespace {

static_assert(kGroupBlocks % kLanes == 0 && kGroup == 4 * kGroupBlocks);

/// The four words of one Philox block per lane. The upper halves of the lanes are zero.
struct Block {
  Words word[4];
};

/// core::philox4x32 in every lane; counters and keys stay in the low halves, the upper halves hold garbage meanwhile.
inline Block philox(Words c0, Words c1, Words c2, Words c3, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const Words product0 = multiply_low(c0, 0xD2511F53);
    const Words product1 = multiply_low(c2, 0xCD9E8D57);
    c0 = (product1 >> 32) ^ c1 ^ std::uint64_t{k0};
    c1 = product1;
    c2 = (product0 >> 32) ^ c3 ^ std::uint64_t{k1};
    c3 = product0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0 & kLow32, c1 & kLow32, c2 & kLow32, c3 & kLow32}};
}

inline Block block_at(const WordStream& stream, std::uint64_t first_block) {
  Words index = splat(first_block);
  for (std::size_t i = 0; i < kLanes; ++i) {
    index[i] += i;
  }
  const Words high = (index >> 32) + (std::uint64_t{stream.draw} << 24);
  return philox(index, high, splat(std::uint64_t{stream.op}), splat(std::uint64_t{stream.port}),
                static_cast<std::uint32_t>(stream.seed), static_cast<std::uint32_t>(stream.seed >> 32));
}

/// Calls put(block of words, offset of the block's lanes within the output's first quarter of a group).
template <class Put>
inline void for_each_block(const WordStream& given, std::uint64_t first_group, std::size_t groups, const Put& put) {
  const WordStream stream = given;
  for (std::size_t group = 0; group < groups; ++group) {
    for (std::size_t lane = 0; lane < kGroupBlocks; lane += kLanes) {
      put(block_at(stream, (first_group + group) * kGroupBlocks + lane), group * kGroup + lane);
    }
  }
}

/// ln((word + 1/2) / 2^32). The significand is brought into [sqrt(1/2), sqrt(2)), where ln m = 2 atanh(s) with
/// s = (m - 1) / (m + 1), |s| < 0.172; the series to s^11 leaves a relative error of 5e-11.
inline Reals log_of_word(Words word) {
  constexpr std::uint64_t kRootHalf = 0x3FE6A09E667F3BCD;  // bits of sqrt(1/2)
  constexpr std::uint64_t kOne = 0x3FF0000000000000;
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  const Words bits = as_words(to_reals(word) + 0.5);
  const Words biased = (bits + (kOne - kRootHalf)) >> 52;  // exponent + 1023
  const Reals m = as_reals(bits - (biased << 52) + kOne);
  const Reals exponent = to_reals(biased) - (1023.0 + 32.0);
  const Reals s = (m - 1.0) / (m + 1.0);
  const Reals z = s * s;
  Reals series = z * (1.0 / 11) + 1.0 / 9;
  series = z * series + 1.0 / 7;
  series = z * series + 1.0 / 5;
  series = z * series + 1.0 / 3;
  series = z * series + 1.0;
  return exponent * kLn2 + (s + s) * series;
}

struct Direction {
  Reals cosine;
  Reals sine;
};

/// Cosine and sine of 2 pi (word + 1/2) / 2^32 - pi / 4: two bits choose the quadrant, the rest an angle within
/// +-pi/4, where the Taylor series to x^11 and x^10 leave an error of 1e-10.
inline Direction direction_of_word(Words word) {
  constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  const Reals x = ((to_reals(word & 0x3FFFFFFF) + 0.5) * 0x1p-30 - 0.5) * kHalfPi;
  const Reals z = x * x;
  Reals sine = z * (-1.0 / 39916800) + 1.0 / 362880;
  sine = z * sine - 1.0 / 5040;
  sine = z * sine + 1.0 / 120;
  sine = z * sine - 1.0 / 6;
  sine = x + x * (z * sine);
  Reals cosine = z * (-1.0 / 3628800) + 1.0 / 40320;
  cosine = z * cosine - 1.0 / 720;
  cosine = z * cosine + 1.0 / 24;
  cosine = z * cosine - 1.0 / 2;
  cosine = z * cosine + 1.0;
  const Words quadrant = word >> 30;
  const auto odd = (quadrant & 1) != 0;
  const Words cosine_sign = ((quadrant + 1) >> 1) << 63;
  const Words sine_sign = (quadrant >> 1) << 63;
  return {as_reals(as_words(odd ? sine : cosine) ^ cosine_sign), as_reals(as_words(odd ? cosine : sine) ^ sine_sign)};
}

void words(const WordStream& stream, std::uint64_t first_group, std::size_t groups, std::uint32_t* out) {
  for_each_block(stream, first_group, groups, [&](const Block& block, std::size_t offset) {
    for (std::size_t j = 0; j < 4; ++j) {
      const HalfWords narrow = __builtin_convertvector(block.word[j], HalfWords);
      __builtin_memcpy(out + offset + j * kGroupBlocks, &narrow, sizeof(narrow));
    }
  });
}

void normal(const WordStream& stream, std::uint64_t first_group, std::size_t groups, double mean, double sigma,
            double* out) {
  for_each_block(stream, first_group, groups, [&](const Block& block, std::size_t offset) {
    for (std::size_t j = 0; j < 4; j += 2) {
      const Reals radius = square_root(log_of_word(block.word[j]) * -2.0) * sigma;
      const Direction direction = direction_of_word(block.word[j + 1]);
      double* const target = out + offset + j * kGroupBlocks;
      store(target, round_to_fp32(radius * direction.cosine + mean));
      store(target + kGroupBlocks, round_to_fp32(radius * direction.sine + mean));
    }
  });
}

void uniform(const WordStream& stream, std::uint64_t first_group, std::size_t groups, double low, double high,
             double offset_of_word, double* out) {
  const double step = (high - low) * 0x1p-32;
  for_each_block(stream, first_group, groups, [&](const Block& block, std::size_t offset) {
    for (std::size_t j = 0; j < 4; ++j) {
      const Reals value = (to_reals(block.word[j]) + offset_of_word) * step + low;
      store(out + offset + j * kGroupBlocks, round_to_fp32(value));
    }
  });
}

/// 2^x for |x| < 1000: the exponent is the nearest integer, and the rest, within +-1/2, goes through the exponential
/// series to degree 9 (relative error 7e-12).
inline Reals power_of_two(Reals x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  constexpr double kIntegerAligner = 0x1.8p52;  // the sum's low bits are the integer nearest to x
  const Reals aligned = x + kIntegerAligner;
  const Reals y = (x - (aligned - kIntegerAligner)) * kLn2;
  Reals series = y * (1.0 / 362880) + 1.0 / 40320;
  series = y * series + 1.0 / 5040;
  series = y * series + 1.0 / 720;
  series = y * series + 1.0 / 120;
  series = y * series + 1.0 / 24;
  series = y * series + 1.0 / 6;
  series = y * series + 1.0 / 2;
  series = y * series + 1.0;
  series = y * series + 1.0;
  return series * as_reals((as_words(aligned) + 1023) << 52);
}

void power(const WordStream& stream, std::uint64_t first_group, std::size_t groups, double low, double high,
           bool with_sign, double* out) {
  const double step = (high - low) * 0x1p-31;
  const std::uint64_t sign_bit = with_sign ? 0x80000000 : 0;
  for_each_block(stream, first_group, groups, [&](const Block& block, std::size_t offset) {
    for (std::size_t j = 0; j < 4; ++j) {
      const Words word = block.word[j];
      const Reals exponent = (to_reals(word & 0x7FFFFFFF) + 0.5) * step + low;
      const Words sign = (word & sign_bit) << 32;
      store(out + offset + j * kGroupBlocks, round_to_fp32(as_reals(as_words(power_of_two(exponent)) | sign)));
    }
  });
}

constexpr GeneratorKernels kKernels = {words, normal, uniform, power};

}  // namespace

const GeneratorKernels& generator_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::data::NUMCHECK_ISA
