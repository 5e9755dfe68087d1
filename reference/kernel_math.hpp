// Functions for loops that are compiled once per instruction set. Include only from such sources.
// Plain arithmetic in an order that the source fixes: all sets produce the same bits, but for `exponential`, which uses fused
// multiply-adds where the processor has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

constexpr double kInfinity = __builtin_inf();

/// Between them e^x is a normal number.
constexpr double kLeastNormalExponent = -707, kLargestNormalExponent = 709;

/// a b + c, rounded once where that is an instruction.
inline double multiply_add(double a, double b, double c) {
#if defined(__FMA__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// e^x, off by less than 1.01 ulp (tests/reference/attention_kernels_test.cpp). Infinities, NaN, overflow and underflow as in
/// IEEE 754, unless `kNormal` says that x lies between the bounds above, which saves work and changes no bit. No branches and no calls: compilers vectorise loops over it.
///
/// x = n ln 2 + r, |r| <= ln 2 / 2, with the high part of ln 2 so short that n times it is exact (Cody and Waite,
/// Software Manual for the Elementary Functions, 1980). The polynomial 1 + r + r^2 s(r) of degree 12 has the least largest
/// relative error (Remez's algorithm in 60 digits, weighted with r^2 e^-r; tests compare with libm), 2^-60 with rounded
/// coefficients. r and r + r^2 s(r) are each rounded by at most 2^-55, and the last addition by half an ulp: 2^-54 where
/// e^r < 1.
template <bool kNormal>
inline double exponential(double x) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42fefa3p-1;
  constexpr double kLn2Low = 0x1.3de6af278ece6p-42;
  constexpr double kIntegerAligner = 0x1.8p52;        // a sum's low bits are the integer nearest to the other term
  constexpr double kLargest = 710, kSmallest = -746;  // e^x overflows, or is less than half the smallest number
  if constexpr (!kNormal) {
    x = x > kLargest ? kLargest : x;
    x = x < kSmallest ? kSmallest : x;
  }
  const double integer = multiply_add(x, kLog2E, kIntegerAligner), n = integer - kIntegerAligner;
  const double r = multiply_add(n, -kLn2Low, multiply_add(n, -kLn2High, x));
  // Even and odd terms apart: two short chains instead of a long one.
  const double r2 = r * r;
  double odd = multiply_add(r2, 0x1.af6bda6320e96p-26, 0x1.71ddf0286b6a5p-19);
  odd = multiply_add(r2, odd, 0x1.a01a01b37b3a3p-13);
  odd = multiply_add(r2, odd, 0x1.111111110ec65p-7);
  odd = multiply_add(r2, odd, 0x1.555555555555bp-3);
  double even = multiply_add(r2, 0x1.1e3d4865271bap-29, 0x1.27e5b42764f25p-22);
  even = multiply_add(r2, even, 0x1.a01a0136a55e8p-16);
  even = multiply_add(r2, even, 0x1.6c16c16c30426p-10);
  even = multiply_add(r2, even, 0x1.5555555555503p-5);
  even = multiply_add(r2, even, 0.5);
  const double y = 1 + multiply_add(r2, multiply_add(r, odd, even), r);
  const auto bits = [](double number) { return __builtin_bit_cast(std::uint64_t, number); };
  if constexpr (kNormal) {
    return __builtin_bit_cast(double, bits(y) + (bits(integer) << 52));
  }
  // 2^n in two factors: a result that is subnormal or close to overflow is rounded once.
  const double aligned = n * 0.5 + kIntegerAligner, rest = n - (aligned - kIntegerAligner) + kIntegerAligner;
  const auto power = [&bits](double of) { return __builtin_bit_cast(double, (bits(of) + 1023) << 52); };
  return y * power(aligned) * power(rest);
}

/// Sums and maxima are formed in eight lanes, whatever the vectors' width.
constexpr std::size_t kLanes = 8;
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
typedef std::uint64_t LaneBits __attribute__((vector_size(kLanes * sizeof(double))));

#if defined(__AVX512F__)
constexpr std::size_t kPartLanes = 8;
#elif defined(__AVX2__)
constexpr std::size_t kPartLanes = 4;
#else
constexpr std::size_t kPartLanes = 2;
#endif
typedef double Part __attribute__((vector_size(kPartLanes * sizeof(double))));

// Vectors are passed by reference: by value, their calling convention depends on the instruction set.

/// Calls choose(a, b, out) for parts that are as wide as registers: g++ compares wider vectors number by number.
template <class Choose>
inline void by_parts(const Lanes& a, const Lanes& b, Lanes& out, const Choose& choose) {
#pragma GCC unroll 4
  for (std::size_t first = 0; first < kLanes; first += kPartLanes) {
    Part x, y, z;
    __builtin_memcpy(&x, reinterpret_cast<const double*>(&a) + first, sizeof(x));
    __builtin_memcpy(&y, reinterpret_cast<const double*>(&b) + first, sizeof(y));
    choose(x, y, z);
    __builtin_memcpy(reinterpret_cast<double*>(&out) + first, &z, sizeof(z));
  }
}

/// out = a > b ? a : b
inline void set_larger(const Lanes& a, const Lanes& b, Lanes& out) {
  by_parts(a, b, out, [](const Part& x, const Part& y, Part& z) { z = x > y ? x : y; });
}

/// out = a < b ? a : b
inline void set_smaller(const Lanes& a, const Lanes& b, Lanes& out) {
  by_parts(a, b, out, [](const Part& x, const Part& y, Part& z) { z = x < y ? x : y; });
}

/// out = e == 0 ? 0 : x
inline void set_unless_zero(const Lanes& e, const Lanes& x, Lanes& out) {
  by_parts(e, x, out, [](const Part& weight, const Part& y, Part& z) { z = weight == 0 ? Part{} : y; });
}

/// The numbers x[0], ..., x[size - 1], size <= 8, and `rest` in the other lanes.
inline void load(const double* x, std::size_t size, double rest, Lanes& out) {
  if (size == kLanes) {
    __builtin_memcpy(&out, x, sizeof(out));
    return;
  }
  out = Lanes{} + rest;
  for (std::size_t l = 0; l < size; ++l) {
    out[l] = x[l];
  }
}

inline double total(const Lanes& x) {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

inline double largest_of(const Lanes& x) {
  double result = x[0];
  for (std::size_t l = 1; l < kLanes; ++l) {
    result = x[l] > result ? x[l] : result;
  }
  return result;
}

/// Calls body(first element, how many) for eight elements at a time, then for the rest.
template <class Body>
inline void for_each_group(std::size_t count, const Body& body) {
  std::size_t n = 0;
  for (; n + kLanes <= count; n += kLanes) {
    body(n, kLanes);
  }
  if (n < count) {
    body(n, count - n);
  }
}

/// -infinity if there is none. NaN is passed over.
inline double largest_of(const double* x, std::size_t count) {
  Lanes largest = Lanes{} - kInfinity;
  for_each_group(count, [&](std::size_t first, std::size_t size) {
    Lanes value;
    load(x + first, size, -kInfinity, value);
    set_larger(value, largest, largest);
  });
  return largest_of(largest);
}

inline double sum_of(const double* x, std::size_t count) {
  Lanes sum{};
  for_each_group(count, [&](std::size_t first, std::size_t size) {
    Lanes value;
    load(x + first, size, 0, value);
    sum += value;
  });
  return total(sum);
}

}  // namespace
}  // namespace numcheck::reference::NUMCHECK_ISA
