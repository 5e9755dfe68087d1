// Fused multiply-adds for processors that have none, so that all instruction sets produce the same bits. Include only from
// sources that are compiled once per instruction set.
//
// A product of doubles is p + e exactly, with p rounded and e from the factors' halves (Dekker, A floating-point technique for
// extending the available precision, 1971), and p + c is s + t exactly (Knuth's TwoSum). s + (t + e) is a b + c rounded once if
// t + e is rounded to odd (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008): otherwise a c far below e
// would not decide between two numbers where e is in the middle of them, which it is in every 16th product with a number of five
// bits. Products below 2^-969 lose e, and factors beyond 2^996 make it NaN.
#pragma once

#include <cstdint>

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define NUMCHECK_FUSED 1
#else
#define NUMCHECK_FUSED 0
#endif

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

#if !NUMCHECK_FUSED

/// x = high + low, with 26 bits each. V is double or a vector of them, here and below.
template <class V>
struct Halves {
  V high, low;

  explicit Halves(const V& x) {
    const V scaled = x * 0x8000001p0;
    high = scaled - (scaled - x);
    low = x - high;
  }
};

/// a b - p, where p = a b rounded.
template <class V>
inline V product_error(const Halves<V>& a, const Halves<V>& b, const V& p) {
  return ((a.high * b.high - p) + a.high * b.low + a.low * b.high) + a.low * b.low;
}

/// p + c + e, rounded once. Bits is the unsigned integer as wide as V.
template <class Bits, class V>
inline V sum_with_error(const V& p, const V& c, const V& e) {
  const V s = p + c, of_c = s - p, t = (p - (s - of_c)) + (c - of_c);
  const V nearest = t + e, of_e = nearest - t, rest = (t - (nearest - of_e)) + (e - of_e);
  const Bits bits = __builtin_bit_cast(Bits, nearest), inexact = Bits(rest != 0);
  const Bits beyond = (bits ^ __builtin_bit_cast(Bits, rest)) >> 63 & inexact;  // 1: the exact sum is nearer to 0
  return s + __builtin_bit_cast(V, (bits - beyond) | (inexact & 1));
}

/// a b + c for |a b| <= |c|, rounded once, but for a chance of 2^-50: |a b| is so large that e is far above what t + e loses,
/// unless it is 0.
template <class V>
inline V add_to_larger(const V& a, const Halves<V>& halves, const V& b, const V& c) {
  const V p = a * b, s = c + p;
  return s + ((p - (s - c)) + product_error(halves, Halves<V>(b), p));
}

inline double multiply_add(double a, double b, double c) {
  const double p = a * b;
  return sum_with_error<std::uint64_t>(p, c, product_error(Halves<double>(a), Halves<double>(b), p));
}

#else

/// a b + c, rounded once.
inline double multiply_add(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

#endif

}  // namespace
}  // namespace numcheck::reference::NUMCHECK_ISA
