// Vectors as wide as the instruction set that this translation unit is compiled for, by the compiler's vector
// extension. Only the two operations that the extension lacks are written per set; neither is a fused multiply-add.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>

namespace numcheck::data::NUMCHECK_ISA {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif
// In g++ 12 the unmasked 512-bit intrinsics warn about an uninitialised variable of their own (GCC bug 105593).
[[maybe_unused]] constexpr unsigned char kAllLanes = 0xFF;
constexpr std::size_t kLanes = kVectorBytes / sizeof(double);

typedef std::uint64_t Words __attribute__((vector_size(kVectorBytes)));
typedef double Reals __attribute__((vector_size(kVectorBytes)));
typedef float Floats __attribute__((vector_size(kVectorBytes / 2)));
typedef std::uint32_t HalfWords __attribute__((vector_size(kVectorBytes / 2)));

constexpr std::uint64_t kLow32 = 0xFFFFFFFF;

inline Words as_words(Reals x) {
  return __builtin_bit_cast(Words, x);
}
inline Reals as_reals(Words x) {
  return __builtin_bit_cast(Reals, x);
}
inline Words splat(std::uint64_t x) {
  return Words{} + x;
}
inline Reals splat(double x) {
  return Reals{} + x;
}

/// Product of the low 32 bits of each lane and `factor`, all 64 bits of it.
inline Words multiply_low(Words x, std::uint32_t factor) {
#if defined(__AVX512F__)
  return __builtin_bit_cast(
      Words, _mm512_maskz_mul_epu32(kAllLanes, __builtin_bit_cast(__m512i, x), _mm512_set1_epi64(factor)));
#elif defined(__AVX2__)
  return __builtin_bit_cast(Words, _mm256_mul_epu32(__builtin_bit_cast(__m256i, x), _mm256_set1_epi64x(factor)));
#elif defined(__x86_64__)
  return __builtin_bit_cast(Words, _mm_mul_epu32(__builtin_bit_cast(__m128i, x), _mm_set1_epi64x(factor)));
#else
  return (x & kLow32) * std::uint64_t{factor};
#endif
}

inline Reals square_root(Reals x) {
#if defined(__AVX512F__)
  return __builtin_bit_cast(Reals, _mm512_maskz_sqrt_pd(kAllLanes, __builtin_bit_cast(__m512d, x)));
#elif defined(__AVX2__)
  return __builtin_bit_cast(Reals, _mm256_sqrt_pd(__builtin_bit_cast(__m256d, x)));
#elif defined(__x86_64__)
  return __builtin_bit_cast(Reals, _mm_sqrt_pd(__builtin_bit_cast(__m128d, x)));
#else
  for (std::size_t i = 0; i < kLanes; ++i) {
    x[i] = __builtin_sqrt(x[i]);
  }
  return x;
#endif
}

/// Integers below 2^52 as doubles: they are the low bits of 2^52 + x.
inline Reals to_reals(Words x) {
  return as_reals(x | 0x4330000000000000) - 0x1p52;
}

inline Reals round_to_fp32(Reals x) {
  return __builtin_convertvector(__builtin_convertvector(x, Floats), Reals);
}

inline void store(double* out, Reals x) {
  __builtin_memcpy(out, &x, sizeof(x));
}

}  // namespace
}  // namespace numcheck::data::NUMCHECK_ISA
