// What is remembered of all expected values. Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {

void scan(const double* expected, const float* bounds, std::size_t size, ScanSums& sums) {
  Vi zeros{};
  Vf largest{};
  Wi unknown{};
  const std::size_t whole = size / kLanes * kLanes;
  Vd most{};
  for (std::size_t i = 0; i < whole; i += kWidth) {
    const Vd y = load(expected + i), magnitude = magnitude_of(y);
    zeros -= y == 0.0;
    most = larger(masked(magnitude, magnitude < __builtin_inf()), most);
  }
  for (std::size_t i = 0; bounds != nullptr && i < whole; i += kFloats) {
    const Vf bound = load(bounds + i);
    unknown |= bound != bound;
    largest = larger(bound, largest);
  }
  sums = {};
  const auto take = [&sums](float bound) {
    sums.unknown_bound = sums.unknown_bound || bound != bound;
    sums.largest_bound = bound > sums.largest_bound ? bound : sums.largest_bound;
  };
  const auto raise = [&sums](double magnitude) {
    sums.largest = magnitude > sums.largest && magnitude < __builtin_inf() ? magnitude : sums.largest;
  };
  for (int l = 0; l < kWidth; ++l) {
    sums.zeros += zeros[l];
    raise(most[l]);
  }
  for (int l = 0; l < kFloats; ++l) {
    take(largest[l]);
  }
  for (std::size_t i = whole; i < size; ++i) {
    sums.zeros += expected[i] == 0 ? 1 : 0;
    raise(__builtin_fabs(expected[i]));
    if (bounds != nullptr) {
      take(bounds[i]);
    }
  }
  sums.unknown_bound = sums.unknown_bound || any(unknown);
}

}  // namespace numcheck::metric::NUMCHECK_ISA
