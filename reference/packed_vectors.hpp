// Vectors of the packed kernels, and their multiply-adds, which produce the same bits on every instruction set. Include only from
// sources that are compiled once per instruction set.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>

#include "reference/fused.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

// A block of rows x vectors sums stays in registers, beside the vectors of one row of a panel and a broadcast number. It
// takes at least eight sums to keep two units busy that take four cycles for a multiply-add.
#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
constexpr int kRows = 8, kVectors = 3;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
constexpr int kRows = 6, kVectors = 2;
#else
constexpr std::size_t kVectorBytes = 16;
constexpr int kRows = 4, kVectors = 2;
#endif
template <class T>
constexpr std::size_t kLanes = kVectorBytes / sizeof(T);
template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
inline void load(const T* x, Vector<T>& out) {
  __builtin_memcpy(&out, x, sizeof(out));
}

template <class T>
inline void store(const Vector<T>& x, T* out) {
  __builtin_memcpy(out, &x, sizeof(x));
}

/// What is known of the products of single numbers.
enum class Products {
  any,
  exact,  ///< each is a number: rounded or fused, sums with it are the same
};

/// Whether sums of doubles are NaN where one rounding makes infinity.
template <class T>
constexpr bool kLosesInfinities = NUMCHECK_FUSED == 0 && sizeof(T) == sizeof(double);

/// a b + c, rounded once. Compilers that may choose contract some blocks and not others, and then results depend on where in
/// a block an element is: GCC 13 avoids chains of such instructions in blocks of few sums.
#if defined(__AVX512F__)
template <Products>
inline Vector<double> multiply_add(double a, const Vector<double>& b, const Vector<double>& c) {
  return _mm512_fmadd_pd(_mm512_set1_pd(a), b, c);
}
template <Products>
inline Vector<float> multiply_add(float a, const Vector<float>& b, const Vector<float>& c) {
  return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
}
#elif defined(__AVX2__)
template <Products>
inline Vector<double> multiply_add(double a, const Vector<double>& b, const Vector<double>& c) {
  return _mm256_fmadd_pd(_mm256_set1_pd(a), b, c);
}
template <Products>
inline Vector<float> multiply_add(float a, const Vector<float>& b, const Vector<float>& c) {
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
}
#elif NUMCHECK_FUSED
template <Products, class T>
inline Vector<T> multiply_add(T a, const Vector<T>& b, const Vector<T>& c) {
  Vector<T> out;
  for (std::size_t l = 0; l < kLanes<T>; ++l) {
    out[l] = std::is_same_v<T, double> ? __builtin_fma(a, b[l], c[l]) : __builtin_fmaf(a, b[l], c[l]);
  }
  return out;
}
#else
template <Products kProducts>
inline Vector<double> multiply_add(double a, const Vector<double>& b, const Vector<double>& c) {
  const Vector<double> all = a - Vector<double>{}, p = all * b;
  if constexpr (kProducts == Products::exact) {
    return p + c;
  }
  typedef std::uint64_t Bits __attribute__((vector_size(kVectorBytes)));
  return sum_with_error<Bits>(p, c, product_error(Halves<Vector<double> >(all), Halves<Vector<double> >(b), p));
}
/// Products of FP32 numbers are doubles. Their sum with c is rounded to odd, so that it can be rounded once more.
template <Products kProducts>
inline Vector<float> multiply_add(float a, const Vector<float>& b, const Vector<float>& c) {
  const Vector<float> all = a - Vector<float>{};
  if constexpr (kProducts == Products::exact) {
    return all * b + c;
  }
  typedef double Wide __attribute__((vector_size(2 * kVectorBytes)));
  typedef std::uint64_t Bits __attribute__((vector_size(2 * kVectorBytes)));
  const Wide p = __builtin_convertvector(all, Wide) * __builtin_convertvector(b, Wide);
  const Wide more = __builtin_convertvector(c, Wide);
  const Wide s = p + more, z = s - p, t = (p - (s - z)) + (more - z);
  const Bits bits = Bits(s), even = (bits & 1) - 1, inexact = Bits(t < 0) | Bits(t > 0);
  const Bits step = 1 - 2 * ((bits ^ Bits(t)) >> 63);  // towards where the exact sum is
  return __builtin_convertvector(Wide(bits + (even & inexact & step)), Vector<float>);
}
#endif

}  // namespace
}  // namespace numcheck::reference::NUMCHECK_ISA
