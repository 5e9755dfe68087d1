// Functions for loops that are compiled once per instruction set. Include only from such sources.
// Plain arithmetic in an order that the source fixes, without fused multiply-adds: all sets produce the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

constexpr double kInfinity = __builtin_inf();

/// e^x, off by less than 0.8 ulp (tests/reference/attention_kernels_test.cpp). Infinities, NaN, overflow and underflow
/// as in IEEE 754. No branches and no calls: compilers vectorise loops over it.
///
/// x = n ln 2 + r, |r| <= ln 2 / 2, with the high part of ln 2 so short that n times it is exact (Cody and Waite,
/// Software Manual for the Elementary Functions, 1980). The exponential series of r to r^13 leaves 2^-57; 1 + r is added
/// with its rounding error, so that only the last addition rounds noticeably.
inline double exponential(double x) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42fefa3p-1;
  constexpr double kLn2Low = 0x1.3de6af278ece6p-42;
  constexpr double kIntegerAligner = 0x1.8p52;        // a sum's low bits are the integer nearest to the other term
  constexpr double kLargest = 710, kSmallest = -746;  // e^x overflows, or is less than half the smallest number
  x = x > kLargest ? kLargest : x;
  x = x < kSmallest ? kSmallest : x;
  const double n = (x * kLog2E + kIntegerAligner) - kIntegerAligner;
  const double high = x - n * kLn2High, low = n * kLn2Low;
  const double r = high - low, lost = (high - r) - low;
  double series = r * (1.0 / 6227020800) + 1.0 / 479001600;
  series = r * series + 1.0 / 39916800;
  series = r * series + 1.0 / 3628800;
  series = r * series + 1.0 / 362880;
  series = r * series + 1.0 / 40320;
  series = r * series + 1.0 / 5040;
  series = r * series + 1.0 / 720;
  series = r * series + 1.0 / 120;
  series = r * series + 1.0 / 24;
  series = r * series + 1.0 / 6;
  series = r * series + 1.0 / 2;
  const double sum = 1 + r, rounding = (1 - sum) + r;
  const double y = sum + (rounding + (r * r * series + (lost + lost * r)));
  // 2^n in two factors: a result that is subnormal or close to overflow is rounded once.
  const double aligned = n * 0.5 + kIntegerAligner, rest = n - (aligned - kIntegerAligner) + kIntegerAligner;
  const auto power = [](double integer) {
    return __builtin_bit_cast(double, (__builtin_bit_cast(std::uint64_t, integer) + 1023) << 52);
  };
  return y * power(aligned) * power(rest);
}

/// Sums and maxima are formed in eight lanes, whatever the vectors' width.
constexpr std::size_t kLanes = 8;
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
typedef std::uint64_t LaneBits __attribute__((vector_size(kLanes * sizeof(double))));

// Vectors are passed by reference: by value, their calling convention depends on the instruction set.

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
    largest = value > largest ? value : largest;
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
