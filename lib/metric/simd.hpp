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
/// Vectors that hold one group of kLanes elements.
constexpr int kParts = kLanes / kWidth;

typedef double Vd __attribute__((vector_size(kWidth * 8)));
typedef std::int64_t Vi __attribute__((vector_size(kWidth * 8)));
typedef std::uint64_t Vu __attribute__((vector_size(kWidth * 8)));
typedef float Vf __attribute__((vector_size(kWidth * 4)));
typedef double LooseVd __attribute__((vector_size(kWidth * 8), aligned(8), may_alias));
typedef std::int64_t LooseVi __attribute__((vector_size(kWidth * 8), aligned(8), may_alias));
typedef float LooseVf __attribute__((vector_size(kWidth * 4), aligned(4), may_alias));

// What the compiler does not find in generic vectors: conversions of whole vectors, roots, and a > b ? a : b as one
// instruction (the second operand if one is NaN or both are equal).
#if defined(__AVX512F__)
constexpr __mmask8 kAll = 0xff;  // the unmasked forms make GCC 12 warn of its own header
inline Vf narrowed(Vd v) {
  return Vf(_mm512_maskz_cvtpd_ps(kAll, __m512d(v)));
}
inline Vd widened(Vf v) {
  return Vd(_mm512_maskz_cvtps_pd(kAll, __m256(v)));
}
inline Vf root_of(Vf v) {
  return Vf(_mm256_sqrt_ps(__m256(v)));
}
inline Vd root_of(Vd v) {
  return Vd(_mm512_maskz_sqrt_pd(kAll, __m512d(v)));
}
inline Vd larger(Vd a, Vd b) {
  return Vd(_mm512_maskz_max_pd(kAll, __m512d(a), __m512d(b)));
}
inline Vd smaller(Vd a, Vd b) {
  return Vd(_mm512_maskz_min_pd(kAll, __m512d(a), __m512d(b)));
}
#elif defined(__AVX2__)
inline Vf narrowed(Vd v) {
  return Vf(_mm256_cvtpd_ps(__m256d(v)));
}
inline Vd widened(Vf v) {
  return Vd(_mm256_cvtps_pd(__m128(v)));
}
inline Vf root_of(Vf v) {
  return Vf(_mm_sqrt_ps(__m128(v)));
}
inline Vd root_of(Vd v) {
  return Vd(_mm256_sqrt_pd(__m256d(v)));
}
inline Vd larger(Vd a, Vd b) {
  return Vd(_mm256_max_pd(__m256d(a), __m256d(b)));
}
inline Vd smaller(Vd a, Vd b) {
  return Vd(_mm256_min_pd(__m256d(a), __m256d(b)));
}
#else
inline Vf narrowed(Vd v) {
  return __builtin_convertvector(v, Vf);
}
inline Vd widened(Vf v) {
  return __builtin_convertvector(v, Vd);
}
inline Vf root_of(Vf v) {
  for (int i = 0; i < kWidth; ++i) {
    v[i] = __builtin_sqrtf(v[i]);
  }
  return v;
}
inline Vd root_of(Vd v) {
  for (int i = 0; i < kWidth; ++i) {
    v[i] = __builtin_sqrt(v[i]);
  }
  return v;
}
inline Vd larger(Vd a, Vd b) {
  return a > b ? a : b;
}
inline Vd smaller(Vd a, Vd b) {
  return a < b ? a : b;
}
#endif

inline Vd load(const double* p) {
  return *reinterpret_cast<const LooseVd*>(p);
}
inline Vd load(const float* p) {
  return widened(*reinterpret_cast<const LooseVf*>(p));
}
inline Vi load(const std::int64_t* p) {
  return *reinterpret_cast<const LooseVi*>(p);
}
inline void store(double* p, Vd v) {
  *reinterpret_cast<LooseVd*>(p) = v;
}
inline void store(std::int64_t* p, Vi v) {
  *reinterpret_cast<LooseVi*>(p) = v;
}
inline Vd splat(double x) {
  return x - Vd{};
}
inline Vd magnitude_of(Vd x) {
  return Vd(Vu(x) & (Vu{} + 0x7fff'ffff'ffff'ffffULL));
}
/// x where the mask is set, else 0.
inline Vd kept(Vd x, Vi mask) {
  return Vd(Vi(x) & mask);
}
inline bool any(Vi mask) {
  std::int64_t bits = 0;
  for (int i = 0; i < kWidth; ++i) {
    bits |= mask[i];
  }
  return bits != 0;
}

/// Accumulators of one group, kept in registers during a segment.
struct Sum {
  Vd part[kParts];
};
struct Count {
  Vi part[kParts];
};

inline Sum fetch(const double (&lanes)[kLanes]) {
  Sum sum;
  for (int s = 0; s < kParts; ++s) {
    sum.part[s] = load(lanes + s * kWidth);
  }
  return sum;
}
inline Count fetch(const std::int64_t (&lanes)[kLanes]) {
  Count count;
  for (int s = 0; s < kParts; ++s) {
    count.part[s] = load(lanes + s * kWidth);
  }
  return count;
}
inline void put(double (&lanes)[kLanes], const Sum& sum) {
  for (int s = 0; s < kParts; ++s) {
    store(lanes + s * kWidth, sum.part[s]);
  }
}
inline void put(std::int64_t (&lanes)[kLanes], const Count& count) {
  for (int s = 0; s < kParts; ++s) {
    store(lanes + s * kWidth, count.part[s]);
  }
}
/// The fixed order in which lanes are added.
inline double total_of(const Sum& sum) {
  double lanes[kLanes];
  put(lanes, sum);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/// The format's spacing at |x|: 2^(max(floor(log2 |x|), emin) - m). |x| = infinity gives infinity.
inline Vd ulp_at(Vd magnitude, const FormatConstants& format) {
  const Vd power = Vd(Vu(magnitude) & (Vu{} + 0x7ff0'0000'0000'0000ULL));
  return larger(power, splat(format.min_normal)) * format.fraction_scale;
}

/// y rounded to the nearest even multiple of `ulp`, a power of two: RN(y) in the format, short of overflow. Adding
/// 1.5 * 2^52 ulp leaves no bits below ulp, because |y| < 2^25 ulp.
inline Vd round_to_multiple(Vd y, Vd ulp) {
  const Vd shifter = ulp * 0x1.8p52;
  return (y + shifter) - shifter;
}

/// 1 / power for a power of two in the range of the output formats' ulps.
inline Vd reciprocal_of_power(Vd power) {
  return Vd((Vu{} + 0x7fe0'0000'0000'0000ULL) - Vu(power));
}

/// Largest ratio so far, lowered so that `numerator > lowered * denominator` is never missed for a larger ratio in
/// spite of the product's rounding.
inline Vd lowered(double ratio) {
  return splat(ratio * (1 - 0x1p-50));
}

}  // namespace
}  // namespace numcheck::metric::NUMCHECK_ISA
