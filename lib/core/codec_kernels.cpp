// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "core/codec_kernels.hpp"

#include "core/codec_code.hpp"

namespace numcheck::core::NUMCHECK_ISA {
namespace {

// Words of a tensor may lie anywhere (offsets are part of the plans), hence no pointers to words.
template <class Word>
inline Word load(const void* words, std::size_t index) {
  Word word;
  __builtin_memcpy(&word, static_cast<const char*>(words) + index * sizeof(Word), sizeof(Word));
  return word;
}

template <class Word>
inline void store(Word word, void* words, std::size_t index) {
  __builtin_memcpy(static_cast<char*>(words) + index * sizeof(Word), &word, sizeof(Word));
}

template <CodecRounding rounding, class Word>
void encode_as(const double* values, std::size_t count, const CodecFormat& given, void* words) {
  const CodecFormat format = given;  // a local copy: the stores below cannot change it
  for (std::size_t i = 0; i < count; ++i) {
    store(static_cast<Word>(word_of<rounding>(values[i], format)), words, i);
  }
}

template <CodecRounding rounding>
void encode_width(const double* values, std::size_t count, const CodecFormat& format, int word_bytes, void* words) {
  if (word_bytes == 1) {
    encode_as<rounding, std::uint8_t>(values, count, format, words);
  } else if (word_bytes == 2) {
    encode_as<rounding, std::uint16_t>(values, count, format, words);
  } else {
    encode_as<rounding, std::uint32_t>(values, count, format, words);
  }
}

void encode(const double* values, std::size_t count, const CodecFormat& format, CodecRounding rounding, int word_bytes,
            void* words) {
  switch (rounding) {
    case CodecRounding::nearest_even:
      return encode_width<CodecRounding::nearest_even>(values, count, format, word_bytes, words);
    case CodecRounding::nearest_away:
      return encode_width<CodecRounding::nearest_away>(values, count, format, word_bytes, words);
    case CodecRounding::toward_zero:
      return encode_width<CodecRounding::toward_zero>(values, count, format, word_bytes, words);
    case CodecRounding::toward_positive:
      return encode_width<CodecRounding::toward_positive>(values, count, format, word_bytes, words);
  }
}

void encode_fp32(const double* values, std::size_t count, void* words) {
  const float nan = __builtin_nanf("");
  for (std::size_t i = 0; i < count; ++i) {
    const double value = values[i];
    store(value == value ? static_cast<float>(value) : nan, words, i);
  }
}

void decode_fp32(const void* words, std::size_t count, double* values) {
  const double nan = __builtin_nan("");
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = load<float>(words, i);
    values[i] = value == value ? static_cast<double>(value) : nan;
  }
}

void decode_bf16(const void* words, std::size_t count, double* values) {
  const double nan = __builtin_nan("");
  for (std::size_t i = 0; i < count; ++i) {
    const float value = __builtin_bit_cast(float, static_cast<std::uint32_t>(load<std::uint16_t>(words, i)) << 16);
    values[i] = value == value ? static_cast<double>(value) : nan;
  }
}

void decode_fp16(const void* words, std::size_t count, double* values) {
  constexpr std::uint32_t kMinNormal = 0x0400;
  constexpr std::uint32_t kInfinity = 0x7C00;
  constexpr std::uint64_t kRebias = std::uint64_t{1023 - 15} << 52;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t word = load<std::uint16_t>(words, i);
    const std::uint32_t magnitude = word & 0x7FFF;
    const std::uint64_t sign = static_cast<std::uint64_t>(word >> 15) << 63;
    const std::uint64_t normal = (static_cast<std::uint64_t>(magnitude) << 42) + kRebias;
    const double subnormal = static_cast<double>(static_cast<std::int32_t>(magnitude)) * 0x1p-24;
    std::uint64_t bits = magnitude < kMinNormal ? __builtin_bit_cast(std::uint64_t, subnormal) : normal;
    bits = magnitude >= kInfinity ? kInfinityBits : bits;
    bits |= sign;
    bits = magnitude > kInfinity ? 0x7FF8000000000000 : bits;
    values[i] = __builtin_bit_cast(double, bits);
  }
}

/// To nearest even: a carry out of the fraction is that of the exponent, up to infinity.
void fp32_to_bf16(const void* words, std::size_t count, void* narrow) {
  constexpr std::uint32_t kMagnitude = 0x7FFF'FFFF, kInfinity = 0x7F80'0000, kNan = 0x7FFF;
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = load<std::uint32_t>(words, i);
    const std::uint32_t nearest = (word + 0x7FFF + (word >> 16 & 1)) >> 16;
    store(static_cast<std::uint16_t>((word & kMagnitude) > kInfinity ? kNan : nearest), narrow, i);
  }
}

constexpr CodecKernels kKernels = {encode, encode_fp32, decode_fp32, decode_bf16, decode_fp16, fp32_to_bf16};

}  // namespace

const CodecKernels& codec_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::core::NUMCHECK_ISA
