// Several numbers at once, for formulas over a scalar: a lane for each of some rows, or for each of some columns. Include only
// from sources that are compiled once per instruction set. Every operation is that of double, lane by lane, so results have the
// same bits as one number at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "reference/exponential.hpp"
#include "reference/kernel_math.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

typedef float PartFloats __attribute__((vector_size(kPartLanes * sizeof(float))));
typedef double LoosePart __attribute__((vector_size(kPartLanes * sizeof(double)), aligned(8), may_alias));
typedef float LoosePartFloats __attribute__((vector_size(kPartLanes * sizeof(float)), aligned(4), may_alias));

/// FP32 numbers in lanes.
struct NarrowLanes {
  PartFloats x{};

  friend NarrowLanes& operator+=(NarrowLanes& a, const NarrowLanes& b) {
    a.x += b.x;
    return a;
  }
};

/// Which lanes a condition holds for.
struct LaneMask {
  PartMask set{};

  friend LaneMask operator|(LaneMask a, LaneMask b) { return {a.set | b.set}; }
  friend LaneMask operator&(LaneMask a, LaneMask b) { return {a.set & b.set}; }
  [[nodiscard]] bool any() const {
#if defined(__AVX512F__)
    return _mm512_test_epi64_mask(__m512i(set), __m512i(set)) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_epi8(__m256i(set)) != 0;
#else
    return (set[0] | set[1]) != 0;
#endif
  }
};

/// kPartLanes numbers; what it has is what formulas ask of a number (tolerance/tracked.hpp).
struct Doubles {
  Part x{};

  Doubles() = default;
  Doubles(double all) : x(all - Part{}) {}  // NOLINT(google-explicit-constructor): formulas mix both
  explicit Doubles(Part lanes) : x(lanes) {}

  static Doubles load(const double* p) { return Doubles(Part(*reinterpret_cast<const LoosePart*>(p))); }
  void store(double* p) const { *reinterpret_cast<LoosePart*>(p) = x; }

  friend Doubles operator-(const Doubles& a) { return Doubles(-a.x); }
  friend Doubles operator+(const Doubles& a, const Doubles& b) { return Doubles(a.x + b.x); }
  friend Doubles operator-(const Doubles& a, const Doubles& b) { return Doubles(a.x - b.x); }
  friend Doubles operator*(const Doubles& a, const Doubles& b) { return Doubles(a.x * b.x); }
  friend Doubles operator/(const Doubles& a, const Doubles& b) { return Doubles(a.x / b.x); }
  friend Doubles& operator+=(Doubles& a, const Doubles& b) { return a = a + b; }
  friend LaneMask operator<(const Doubles& a, const Doubles& b) { return {PartMask(a.x < b.x)}; }
  friend LaneMask operator>(const Doubles& a, const Doubles& b) { return {PartMask(a.x > b.x)}; }
  friend LaneMask operator==(const Doubles& a, const Doubles& b) { return {PartMask(a.x == b.x)}; }
  friend LaneMask operator>=(const Doubles& a, const Doubles& b) { return {PartMask(a.x >= b.x)}; }

  friend Doubles magnitude(const Doubles& a) {
    return Doubles(Part(PartMask(a.x) & (PartMask{} + 0x7fff'ffff'ffff'ffffLL)));
  }
  friend Doubles chosen(const LaneMask& condition, const Doubles& a, const Doubles& b) {
    return Doubles(condition.set ? a.x : b.x);
  }
  /// As std::min and std::max: the first one where they are equal, or either is NaN.
  friend Doubles smaller(const Doubles& a, const Doubles& b) { return Doubles(b.x < a.x ? b.x : a.x); }
  friend Doubles larger(const Doubles& a, const Doubles& b) { return Doubles(a.x < b.x ? b.x : a.x); }
  friend LaneMask is_finite(const Doubles& a) { return magnitude(a) < Doubles(kInfinity); }

  friend NarrowLanes narrowed(const Doubles& a) {
#if defined(__AVX512F__)
    return {PartFloats(_mm512_maskz_cvtpd_ps(0xff, __m512d(a.x)))};
#elif defined(__AVX2__)
    return {PartFloats(_mm256_cvtpd_ps(__m256d(a.x)))};
#else
    return {__builtin_convertvector(a.x, PartFloats)};
#endif
  }
  friend Doubles root_of(const Doubles& a) {
#if defined(__AVX512F__)
    return Doubles(Part(_mm512_maskz_sqrt_pd(0xff, __m512d(a.x))));
#elif defined(__AVX2__)
    return Doubles(Part(_mm256_sqrt_pd(__m256d(a.x))));
#else
    Doubles root = a;
    for (std::size_t l = 0; l < kPartLanes; ++l) {
      root.x[l] = __builtin_sqrt(a.x[l]);
    }
    return root;
#endif
  }
};

inline Doubles widened(const NarrowLanes& a) {
#if defined(__AVX512F__)
  return Doubles(Part(_mm512_maskz_cvtps_pd(0xff, __m256(a.x))));
#elif defined(__AVX2__)
  return Doubles(Part(_mm256_cvtps_pd(__m128(a.x))));
#else
  return Doubles(__builtin_convertvector(a.x, Part));
#endif
}

/// The numbers from there on; null: there are none.
inline float* after(float* numbers, std::size_t at) {
  return numbers == nullptr ? nullptr : numbers + at;
}

/// e^x of each lane, see exponential.hpp.
inline Doubles exponential_of(const Doubles& a) {
#if NUMCHECK_FUSED
  double x[kPartLanes];
  a.store(x);
  set_exponentials<false>(x, kPartLanes, 0, x);
  return Doubles::load(x);
#else
  Part y;
  set_part<false>(a.x, y);
  return Doubles(y);
#endif
}

/// tanh of each lane, off by less than 4 ulp (tests/reference/lane_functions_test.cpp): x + x^3 s(x^2) up to 3/8, where the largest
/// relative error of s is 2^-59 (Chebyshev interpolation in 50 digits), and 1 - rest beyond, where rest = 2 / (e^2|x| + 1).
inline Doubles hyperbolic_tangent_of(const Doubles& a, const Doubles& rest) {
  constexpr double kCoefficients[] = {-0x1.861c26fe060b5p-13, 0x1.2e5b26b41cac6p-11, -0x1.7d273f7e2f224p-10,
                                      0x1.d6cebe48bbf20p-9,   -0x1.226e25b3b82e6p-7, 0x1.664f484c3912dp-6,
                                      -0x1.ba1ba1b9bc59dp-5,  0x1.1111111110f0fp-3,  -0x1.5555555555555p-2};
  const Doubles size = magnitude(a), square = a * a;
  Doubles series = kCoefficients[0];
  for (std::size_t n = 1; n < std::size(kCoefficients); ++n) {
    series = series * square + kCoefficients[n];
  }
  const Doubles tangent = chosen(size < Doubles(0.375), size + size * (square * series), 1.0 - rest);
  return chosen(a < Doubles(0.0), -tangent, tangent);
}
inline Doubles hyperbolic_tangent_of(const Doubles& a) {
  return hyperbolic_tangent_of(a, 2.0 / (exponential_of(2.0 * magnitude(a)) + 1.0));
}

template <class Yes, class No>
auto either(const LaneMask& condition, const Yes& yes, const No& no) {
  return chosen(condition, yes(), no());
}

/// x as FP32 numbers that are not smaller, for x >= 0 and not beyond FP32. As TrackedOutput rounds bounds.
inline void store_upward(const Doubles& x, float* p) {
  typedef std::int32_t Ints __attribute__((vector_size(kPartLanes * sizeof(float))));
  const NarrowLanes nearest = narrowed(x);
  const PartMask below = PartMask(widened(nearest).x < x.x);  // -1 where it is
  const Ints bits = Ints(nearest.x) - __builtin_convertvector(below, Ints);
  *reinterpret_cast<LoosePartFloats*>(p) = PartFloats(bits);
}

}  // namespace
}  // namespace numcheck::reference::NUMCHECK_ISA
