// e^x of doubles, with the same bits on every instruction set. Include only from sources that are compiled once per instruction
// set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/fused.hpp"
#include "reference/kernel_math.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

/// Between them e^x is a normal number.
constexpr double kLeastNormalExponent = -707, kLargestNormalExponent = 709;

constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kLn2High = 0x1.62e42fefa3p-1;
constexpr double kLn2Low = 0x1.3de6af278ece6p-42;
constexpr double kIntegerAligner = 0x1.8p52;  // a sum's low bits are the integer nearest to the other term

/// The first terms of s below, odd and even ones apart: two short chains instead of a long one. `chain`(a, b, c) is a b + c.
template <class V, class Chain>
inline void set_first_terms(const V& r2, V& odd, V& even, const Chain& chain) {
  odd = chain(r2, V{} + 0x1.af6bda6320e96p-26, V{} + 0x1.71ddf0286b6a5p-19);
  odd = chain(r2, odd, V{} + 0x1.a01a01b37b3a3p-13);
  odd = chain(r2, odd, V{} + 0x1.111111110ec65p-7);
  even = chain(r2, V{} + 0x1.1e3d4865271bap-29, V{} + 0x1.27e5b42764f25p-22);
  even = chain(r2, even, V{} + 0x1.a01a0136a55e8p-16);
  even = chain(r2, even, V{} + 0x1.6c16c16c30426p-10);
  even = chain(r2, even, V{} + 0x1.5555555555503p-5);
}
constexpr double kLastOdd = 0x1.555555555555bp-3, kLastEven = 0.5;

/// y 2^n, with n in the low bits of `integer`, which is an integer plus kIntegerAligner. Bits is the integer as wide as V.
template <bool kNormal, class Bits, class V>
inline V scaled_by_power(const V& y, const V& integer) {
  if constexpr (kNormal) {
    return __builtin_bit_cast(V, __builtin_bit_cast(Bits, y) + (__builtin_bit_cast(Bits, integer) << 52));
  }
  // 2^n in two factors: a result that is subnormal or close to overflow is rounded once.
  const V n = integer - kIntegerAligner;
  const V aligned = n * 0.5 + kIntegerAligner, rest = n - (aligned - kIntegerAligner) + kIntegerAligner;
  const V first = __builtin_bit_cast(V, (__builtin_bit_cast(Bits, aligned) + 1023) << 52);
  return y * first * __builtin_bit_cast(V, (__builtin_bit_cast(Bits, rest) + 1023) << 52);
}

/// x where e^x neither overflows nor is less than half the smallest number, otherwise a number where it is.
template <bool kNormal, class V>
inline V within_range(const V& x) {
  if constexpr (kNormal) {
    return x;
  }
  const V largest = V{} + 710.0, smallest = V{} - 746.0;
  const V below = x > largest ? largest : x;
  return below < smallest ? smallest : below;
}

/// e^x, off by less than 1.01 ulp (tests/reference/vector_math_test.cpp). Infinities, NaN, overflow and underflow as in
/// IEEE 754, unless `kNormal` says that x lies between the bounds above, which saves work and changes no bit. No branches and no
/// calls: compilers vectorise loops over it.
///
/// x = n ln 2 + r, |r| <= ln 2 / 2, with the high part of ln 2 so short that n times it is exact (Cody and Waite,
/// Software Manual for the Elementary Functions, 1980). The polynomial 1 + r + r^2 s(r) of degree 12 has the least largest
/// relative error (Remez's algorithm in 60 digits, weighted with r^2 e^-r; tests compare with libm), 2^-60 with rounded
/// coefficients. r and r + r^2 s(r) are each rounded by at most 2^-55, and the last addition by half an ulp: 2^-54 where
/// e^r < 1.
template <bool kNormal>
inline double exponential(double given) {
  const double x = within_range<kNormal>(given);
  const double integer = multiply_add(x, kLog2E, kIntegerAligner), n = integer - kIntegerAligner;
  const double r = multiply_add(n, -kLn2Low, multiply_add(n, -kLn2High, x));
  const double r2 = r * r;
  double odd, even;
  set_first_terms(r2, odd, even, [](double a, double b, double c) { return multiply_add(a, b, c); });
  odd = multiply_add(r2, odd, kLastOdd);
  even = multiply_add(r2, even, kLastEven);
  const double y = 1 + multiply_add(r2, multiply_add(r, odd, even), r);
  return scaled_by_power<kNormal, std::uint64_t>(y, integer);
}

#if !NUMCHECK_FUSED

/// What `exponential` returns, found with plain arithmetic in nine cases of ten.
struct QuickExponentials {
  Part y;           ///< where that is known
  Part integer, r;  ///< as in `exponential`, where they are known
  PartMask known, reduced;
};

/// 1 + t of `exponential`, whose t = r + r^2 s rounded lies in the interval w + h +- delta: y is known where both its ends give
/// the same. s differs from q + carried, what is computed here, by at most 1.14 2^-53: half an ulp of `even` and of the sum with
/// it (2^-54 each), an ulp of `odd` times r (2^-56.5), and what the products are rounded by. r^2 q is rounded by at most
/// 0.57 r^2 2^-53. Without the roundings that `carried` has, delta would be twice as large.
template <bool kNormal>
inline void set_quick(const Part& given, QuickExponentials& out) {
  const Part x = within_range<kNormal>(given);
  const Part integer = x * kLog2E + kIntegerAligner, n = integer - kIntegerAligner;
  // n times the low part is rounded here, so that r is known where it is the same for more and for less.
  const Part high = x - n * kLn2High;
  const Part r = high - n * (kLn2Low * (1 - 0x1p-51)), r2 = r * r;
  // n may be the other integer near the middle between two.
  constexpr double kMiddle = 0.12011325;  // (ln 2 / 2)^2 is 0.120113253
  out.reduced = PartMask(high - n * (kLn2Low * (1 + 0x1p-51)) == r) & PartMask(r2 < kMiddle);
  Part odd, even;
  set_first_terms(r2, odd, even, [](const Part& a, const Part& b, const Part& c) { return a * b + c; });
  odd = r2 * odd + kLastOdd;
  const Part of_even = r2 * even;
  even = of_even + kLastEven;
  const Part of_odd = r * odd, q = even + of_odd;
  const Part carried = (of_even - (even - kLastEven)) + (of_odd - (q - even));
  const Part u = r2 * q, w = r + u;
  const Part h = (u - (w - r)) + r2 * carried, delta = r2 * (1.75 * 0x1p-53);
  const Part y = 1 + (w + (h - delta));
  out.known = out.reduced & PartMask(y == 1 + (w + (h + delta)));
  out.y = scaled_by_power<kNormal, PartBits>(y, integer);
  out.integer = integer;
  out.r = r;
}

/// a b + c for |a b| <= |c|, rounded once, where that is the same for b - error and b + error; sets `known` to 0 elsewhere.
inline Part add_uncertain(const Part& a, const Halves<Part>& halves, const Part& b, double c, double error,
                          PartMask& known) {
  const Part p = a * b, s = c + p;
  const Part rest = (p - (s - c)) + product_error(halves, Halves<Part>(b), p), off = a * error;
  const Part result = s + (rest - off);
  known &= PartMask(result == s + (rest + off));
  return result;
}

/// The rest of `exponential`, once x is reduced. The first terms of plain arithmetic are off by an ulp each, which changes the
/// sum with the next ones in a case of fifty: `known` is 0 there.
template <bool kNormal>
inline void finish_exponentials(const Part& integer, const Part& r, Part& out, PartMask& known) {
  const Part r2 = r * r;
  const Halves<Part> halves(r2);
  Part odd, even;
  set_first_terms(r2, odd, even, [](const Part& a, const Part& b, const Part& c) { return a * b + c; });
  known = PartMask{} - 1;
  odd = add_uncertain(r2, halves, odd, kLastOdd, 1.05 * 0x1p-59, known);
  even = add_uncertain(r2, halves, even, kLastEven, 1.05 * 0x1p-57, known);
  const Part y = 1 + add_to_larger(r2, halves, add_to_larger(r, Halves<Part>(r), odd, even), r);
  out = scaled_by_power<kNormal, PartBits>(y, integer);
}

/// e^x of one vector.
template <bool kNormal>
inline void set_part(const Part& x, Part& y) {
  QuickExponentials quick;
  set_quick<kNormal>(x, quick);
  y = quick.y;
  if ((quick.known[0] & quick.known[kPartLanes - 1]) != 0) {
    return;
  }
  PartMask known;
  Part finished;
  finish_exponentials<kNormal>(quick.integer, quick.r, finished, known);
  known &= quick.reduced;
  for (std::size_t l = 0; l < kPartLanes; ++l) {
    y[l] = known[l] != 0 ? finished[l] : exponential<kNormal>(x[l]);
  }
}
static_assert(kPartLanes == 2);

constexpr std::size_t kChunk = 128;

/// Arguments of a chunk whose y is not yet known.
struct Unfinished {
  double x[kChunk + 1], integer[kChunk + 1], r[kChunk + 1];
  std::size_t at[kChunk + 1];
  std::size_t count = 0;
};

template <bool kNormal>
inline void finish(const Unfinished& unfinished, double* out) {
  for (std::size_t first = 0; first < unfinished.count; first += kPartLanes) {
    Part integer, r, y;
    PartMask known;
    __builtin_memcpy(&integer, unfinished.integer + first, sizeof(integer));
    __builtin_memcpy(&r, unfinished.r + first, sizeof(r));
    finish_exponentials<kNormal>(integer, r, y, known);
    for (std::size_t l = 0; l < kPartLanes && first + l < unfinished.count; ++l) {
      out[unfinished.at[first + l]] = known[l] != 0 ? y[l] : exponential<kNormal>(unfinished.x[first + l]);
    }
  }
}

/// e^(x - shift) for `count` <= kChunk arguments, a multiple of kPartLanes.
template <bool kNormal>
inline void set_chunk(const double* x, std::size_t count, double shift, double* out) {
  Unfinished unfinished;
  for (std::size_t n = 0; n < count; n += kPartLanes) {
    Part given;
    __builtin_memcpy(&given, x + n, sizeof(given));
    QuickExponentials quick;
    given -= shift;
    set_quick<kNormal>(given, quick);
    __builtin_memcpy(out + n, &quick.y, sizeof(quick.y));
    for (std::size_t l = 0; l < kPartLanes; ++l) {
      if (__builtin_expect(quick.reduced[l] == 0, 0)) {
        out[n + l] = exponential<kNormal>(given[l]);
        quick.known[l] = -1;
      }
      // Without a branch, which would go either way.
      unfinished.x[unfinished.count] = given[l];
      unfinished.integer[unfinished.count] = quick.integer[l];
      unfinished.r[unfinished.count] = quick.r[l];
      unfinished.at[unfinished.count] = n + l;
      unfinished.count += static_cast<std::size_t>(quick.known[l] + 1);
    }
  }
  unfinished.integer[unfinished.count] = unfinished.r[unfinished.count] = 0;  // of a last lane that is not used
  finish<kNormal>(unfinished, out);
}

#endif

/// out = e^(x - shift); may be the same place.
template <bool kNormal>
inline void set_exponentials(const double* x, std::size_t count, double shift, double* out) {
  std::size_t n = 0;
#if !NUMCHECK_FUSED
  for (const std::size_t whole = count / kPartLanes * kPartLanes; n < whole;) {
    const std::size_t size = whole - n < kChunk ? whole - n : kChunk;
    set_chunk<kNormal>(x + n, size, shift, out + n);
    n += size;
  }
#endif
  for (; n < count; ++n) {
    out[n] = exponential<kNormal>(x[n] - shift);
  }
}

}  // namespace
}  // namespace numcheck::reference::NUMCHECK_ISA
