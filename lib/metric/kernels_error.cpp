// Norms and special values. Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "metric/kernels_isa.hpp"

#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// Elements between two looks at the flags that call for a slow, scalar update.
constexpr std::size_t kBlock = 64;

inline double magnitude_of(double x) {
  return __builtin_fabs(x);
}

/// Updates the largest |got - y| / |y| exactly.
void raise_max_rel(const double* got, const double* y, std::size_t begin, std::size_t end, double& max_rel) {
  for (std::size_t i = begin; i < end; ++i) {
    const double error = magnitude_of(got[i] - y[i]);
    if (y[i] != 0 && error > 0) {
      const double ratio = error / magnitude_of(y[i]);
      max_rel = ratio > max_rel ? ratio : max_rel;
    }
  }
}

}  // namespace

bool is_special(const SegmentView& segment, const FormatConstants& format) {
  const Vd infinity = splat(__builtin_inf());
  const Vd threshold = splat(format.overflow_threshold);
  const Vd overflow = splat(format.hidden_overflow);
  Vi regular = ~Vi{};
  for (std::size_t i = 0; i < segment.size; i += kWidth) {
    const Vd y = load(segment.expected + i);
    const Vd a = load(segment.magnitude + i);
    const Vd s2 = load(segment.second_moment + i);
    // a < overflow is false for a NaN, and for an infinite A of any format: that costs a second look only.
    regular &=
        (magnitude_of(load(segment.got + i)) < infinity) & (magnitude_of(y) < threshold) & (a < overflow) & (s2 == s2);
  }
  if (segment.unrounded != nullptr) {
    for (std::size_t i = 0; i < segment.size; i += kWidth) {
      regular &= magnitude_of(load(segment.unrounded + i)) < infinity;
    }
  }
  return any(~regular);
}

void norms(const double* got, const double* expected, std::size_t size, ErrorSums& sums) {
  Sum e_sum = fetch(sums.e), abs_sum = fetch(sums.abs_e), e2 = fetch(sums.e2), y2 = fetch(sums.y2);
  Sum y_sum = fetch(sums.y), ey = fetch(sums.ey), max_abs = fetch(sums.max_abs);
  Count nonzero = fetch(sums.nonzero), toward = fetch(sums.toward_zero);
  for (std::size_t block = 0; block < size; block += kBlock) {
    const std::size_t end = block + kBlock < size ? block + kBlock : size;
    const Vd floor = lowered(sums.max_rel);
    Vi raise{};
    for (std::size_t i = block; i < end; i += kLanes) {
#pragma GCC unroll 4
      for (int s = 0; s < kParts; ++s) {
        const Vd y = load(expected + i + s * kWidth);
        const Vd e = load(got + i + s * kWidth) - y;
        const Vd abs_e = magnitude_of(e);
        const Vd product = e * y;
        e_sum.part[s] += e;
        abs_sum.part[s] += abs_e;
        e2.part[s] += e * e;
        y_sum.part[s] += y;
        y2.part[s] += y * y;
        ey.part[s] += product;
        max_abs.part[s] = larger(abs_e, max_abs.part[s]);
        nonzero.part[s] -= abs_e > 0.0;
        toward.part[s] -= product < 0.0;
        raise |= abs_e > floor * magnitude_of(y);
      }
    }
    if (any(raise)) {
      raise_max_rel(got, expected, block, end, sums.max_rel);
    }
  }
  put(sums.e, e_sum), put(sums.abs_e, abs_sum), put(sums.e2, e2), put(sums.y, y_sum), put(sums.y2, y2),
      put(sums.ey, ey);
  put(sums.max_abs, max_abs), put(sums.nonzero, nonzero), put(sums.toward_zero, toward);
}

}  // namespace numcheck::metric::NUMCHECK_ISA
