// Functions for loops that are compiled once per instruction set. Include only from such sources.
// Plain arithmetic in an order that the source fixes: all sets produce the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

constexpr double kInfinity = __builtin_inf();

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
typedef std::int64_t PartMask __attribute__((vector_size(kPartLanes * sizeof(double))));
typedef std::uint64_t PartBits __attribute__((vector_size(kPartLanes * sizeof(double))));

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
