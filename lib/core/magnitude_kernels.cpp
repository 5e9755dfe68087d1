// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "core/magnitude_kernels.hpp"

namespace numcheck::core::NUMCHECK_ISA {
namespace {

constexpr std::size_t kChains = 32;  // as many as a processor runs side by side, in vectors

struct Chains {
  double largest[kChains] = {};
  double zeros[kChains] = {};  ///< NaN if a number is infinite or NaN

  void take(double x, std::size_t chain) {
    const double magnitude = __builtin_fabs(x);
    const double finite = magnitude < __builtin_inf() ? magnitude : 0;
    largest[chain] = finite > largest[chain] ? finite : largest[chain];
    zeros[chain] += x * 0.0;
  }
};

}  // namespace

void add_magnitudes(const double* values, std::size_t count, double& largest, bool& all_finite) noexcept {
  Chains chains;
  std::size_t i = 0;
  for (; i + kChains <= count; i += kChains) {
    for (std::size_t l = 0; l < kChains; ++l) {
      chains.take(values[i + l], l);
    }
  }
  for (; i < count; ++i) {
    chains.take(values[i], 0);
  }
  for (std::size_t l = 0; l < kChains; ++l) {
    largest = chains.largest[l] > largest ? chains.largest[l] : largest;
    all_finite = all_finite && chains.zeros[l] == 0;
  }
}

}  // namespace numcheck::core::NUMCHECK_ISA
