// Vectors of the instruction set that a kernel source is compiled for. Include only from such sources.
// Everything is elementwise IEEE arithmetic, so the bits do not depend on the width.
#pragma once

#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "metric/accumulators.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 8;
#elif defined(__AVX2__)
constexpr int kWidth = 4;
#else
constexpr int kWidth = 2;
#endif
/// How many vectors of doubles (kParts) and of floats (kGroups, of kFloats each) hold one group of kLanes elements.
constexpr int kParts = kLanes / kWidth;
constexpr int kFloats = kWidth < kLanes ? 2 * kWidth : kLanes;
constexpr int kGroups = kLanes / kFloats;

typedef double Vd __attribute__((vector_size(kWidth * 8)));
typedef std::int64_t Vi __attribute__((vector_size(kWidth * 8)));
typedef std::uint64_t Vu __attribute__((vector_size(kWidth * 8)));
typedef float Half __attribute__((vector_size(kWidth * 4)));  ///< as many floats as a Vd has doubles
typedef std::int32_t HalfInts __attribute__((vector_size(kWidth * 4)));
typedef float Vf __attribute__((vector_size(kFloats * 4)));
typedef std::int32_t Wi __attribute__((vector_size(kFloats * 4)));
typedef std::uint32_t Wu __attribute__((vector_size(kFloats * 4)));

// Operations for which the compiler generates poor code from generic vectors: conversions, square roots, and
// a > b ? a : b as one instruction (the second operand if one is NaN or both are equal).
#if defined(__AVX512F__)
constexpr __mmask8 kAll = 0xff;  // the unmasked forms trigger warnings in GCC 12's own header
inline Half narrowed(Vd v) {
  return Half(_mm512_maskz_cvtpd_ps(kAll, __m512d(v)));
}
inline Vd widened(Half v) {
  return Vd(_mm512_maskz_cvtps_pd(kAll, __m256(v)));
}
inline Vi widened(HalfInts v) {
  return Vi(_mm512_maskz_cvtepi32_epi64(kAll, __m256i(v)));
}
inline Vd larger(Vd a, Vd b) {
  return Vd(_mm512_maskz_max_pd(kAll, __m512d(a), __m512d(b)));
}
inline Vd smaller(Vd a, Vd b) {
  return Vd(_mm512_maskz_min_pd(kAll, __m512d(a), __m512d(b)));
}
#elif defined(__AVX2__)
inline Half narrowed(Vd v) {
  return Half(_mm256_cvtpd_ps(__m256d(v)));
}
inline Vd widened(Half v) {
  return Vd(_mm256_cvtps_pd(__m128(v)));
}
inline Vi widened(HalfInts v) {
  return Vi(_mm256_cvtepi32_epi64(__m128i(v)));
}
inline Vd larger(Vd a, Vd b) {
  return Vd(_mm256_max_pd(__m256d(a), __m256d(b)));
}
inline Vd smaller(Vd a, Vd b) {
  return Vd(_mm256_min_pd(__m256d(a), __m256d(b)));
}
#else
inline Half narrowed(Vd v) {
  return __builtin_convertvector(v, Half);
}
inline Vd widened(Half v) {
  return __builtin_convertvector(v, Vd);
}
inline Vi widened(HalfInts v) {
  return __builtin_convertvector(v, Vi);
}
inline Vd larger(Vd a, Vd b) {
  return a > b ? a : b;
}
inline Vd smaller(Vd a, Vd b) {
  return a < b ? a : b;
}
#endif
#if defined(__AVX2__)
inline Vf root_of(Vf v) {
  return Vf(_mm256_sqrt_ps(__m256(v)));
}
inline Vf larger(Vf a, Vf b) {
  return Vf(_mm256_max_ps(__m256(a), __m256(b)));
}
inline Vf smaller(Vf a, Vf b) {
  return Vf(_mm256_min_ps(__m256(a), __m256(b)));
}
#elif defined(__SSE2__)
inline Vf root_of(Vf v) {
  return Vf(_mm_sqrt_ps(__m128(v)));
}
inline Vf larger(Vf a, Vf b) {
  return Vf(_mm_max_ps(__m128(a), __m128(b)));
}
inline Vf smaller(Vf a, Vf b) {
  return Vf(_mm_min_ps(__m128(a), __m128(b)));
}
#else
inline Vf root_of(Vf v) {
  for (int i = 0; i < kFloats; ++i) {
    v[i] = __builtin_sqrtf(v[i]);
  }
  return v;
}
inline Vf larger(Vf a, Vf b) {
  return a > b ? a : b;
}
inline Vf smaller(Vf a, Vf b) {
  return a < b ? a : b;
}
#endif

typedef double LooseVd __attribute__((vector_size(kWidth * 8), aligned(8), may_alias));
typedef std::int64_t LooseVi __attribute__((vector_size(kWidth * 8), aligned(8), may_alias));
typedef float LooseHalf __attribute__((vector_size(kWidth * 4), aligned(4), may_alias));
typedef std::int32_t LooseHalfInts __attribute__((vector_size(kWidth * 4), aligned(4), may_alias));
typedef float LooseVf __attribute__((vector_size(kFloats * 4), aligned(4), may_alias));
typedef std::int32_t LooseWi __attribute__((vector_size(kFloats * 4), aligned(4), may_alias));

inline Vd load(const double* p) {
  return *reinterpret_cast<const LooseVd*>(p);
}
inline Vi load(const std::int64_t* p) {
  return *reinterpret_cast<const LooseVi*>(p);
}
inline Vf load(const float* p) {
  return *reinterpret_cast<const LooseVf*>(p);
}
inline Wi load(const std::int32_t* p) {
  return *reinterpret_cast<const LooseWi*>(p);
}
inline Vd load_wide(const float* p) {
  return widened(*reinterpret_cast<const LooseHalf*>(p));
}
inline Vi load_wide(const std::int32_t* p) {
  return widened(*reinterpret_cast<const LooseHalfInts*>(p));
}
inline void store(double* p, Vd v) {
  *reinterpret_cast<LooseVd*>(p) = v;
}
inline void store(std::int64_t* p, Vi v) {
  *reinterpret_cast<LooseVi*>(p) = v;
}
inline void store(float* p, Vf v) {
  *reinterpret_cast<LooseVf*>(p) = v;
}
inline void store(std::int32_t* p, Wi v) {
  *reinterpret_cast<LooseWi*>(p) = v;
}
inline void store_narrow(float* p, Vd v) {
  *reinterpret_cast<LooseHalf*>(p) = narrowed(v);
}
inline Vd splat(double x) {
  return x - Vd{};
}
inline Vf splat_float(float x) {
  return x - Vf{};
}
inline Vd magnitude_of(Vd x) {
  return Vd(Vu(x) & (Vu{} + 0x7fff'ffff'ffff'ffffULL));
}
inline Vf magnitude_of(Vf x) {
  return Vf(Wu(x) & (Wu{} + 0x7fff'ffffU));
}
/// x where the mask is set, 0 elsewhere.
inline Vd masked(Vd x, Vi mask) {
  return Vd(Vi(x) & mask);
}
/// True if any element is set; all bits of an element must be equal.
inline bool any(Vi mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask(__m512i(mask), __m512i(mask)) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_epi8(__m256i(mask)) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_epi8(__m128i(mask)) != 0;
#else
  return (mask[0] | mask[1]) != 0;
#endif
}
inline bool any(Wi mask) {
#if defined(__AVX2__)
  return _mm256_movemask_epi8(__m256i(mask)) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_epi8(__m128i(mask)) != 0;
#else
  return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
#endif
}

/// 1 / ulp(x) = 2^(m - max(floor(log2 |x|), emin)), from the exponent bits alone.
struct InverseUlp {
  explicit InverseUlp(const FormatConstants& format)
      : least(splat(format.min_normal)),
        // 2 e(1) - e(power) + m in the exponent bits, where m = e(1) - e(2^-m).
        constant(Vu{} + (3 * kOne - __builtin_bit_cast(std::uint64_t, format.fraction_scale))) {}

  [[nodiscard]] Vd at(Vd x) const {
    const Vd power = larger(Vd(Vu(x) & (Vu{} + 0x7ff0'0000'0000'0000ULL)), least);
    return Vd(constant - Vu(power));
  }

  static constexpr std::uint64_t kOne = 0x3ff0'0000'0000'0000ULL;  ///< bits of 1.0
  Vd least;
  Vu constant;
};

/// y in ulps rounded to the nearest even integer: adding 1.5 * 2^52 leaves no bits below 1, because |y| < 2^32.
inline Vd nearest_integer(Vd y) {
  return (y + 0x1.8p52) - 0x1.8p52;
}

/// The same in FP32, for |y| < 2^22.
inline Vf nearest_integer(Vf y) {
  return (y + 0x1.8p23F) - 0x1.8p23F;
}

/// The largest ratio so far, lowered slightly so that `numerator > lowered * denominator` holds for every larger ratio
/// despite rounding of the product.
inline Vd lowered(double ratio) {
  return splat(ratio * (1 - 0x1p-50));
}

}  // namespace
}  // namespace numcheck::metric::NUMCHECK_ISA
