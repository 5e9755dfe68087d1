// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "reference/cast_kernels.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

constexpr std::size_t kMaxima = 32;  ///< as many as a processor finds side by side

void scaled(const double* x, std::size_t count, float scale, double most, double* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto product = static_cast<double>(static_cast<float>(x[i]) * scale);
    const double below = product > most ? most : product;
    out[i] = below < -most ? -most : below;
  }
}

template <class Size>
double largest(const double* x, std::size_t count, const Size& size_of) {
  double most[kMaxima] = {};
  std::size_t i = 0;
  for (; i + kMaxima <= count; i += kMaxima) {
    for (std::size_t l = 0; l < kMaxima; ++l) {
      const double size = size_of(x[i + l]);
      most[l] = size > most[l] ? size : most[l];
    }
  }
  for (; i < count; ++i) {
    const double size = size_of(x[i]);
    most[0] = size > most[0] ? size : most[0];
  }
  for (const double other : most) {
    most[0] = other > most[0] ? other : most[0];
  }
  return most[0];
}

double largest_magnitude(const double* x, std::size_t count) {
  return largest(x, count, [](double value) { return __builtin_fabs(value); });
}

double largest_value(const double* x, std::size_t count) {
  return largest(x, count, [](double value) { return value; });
}

constexpr CastKernels kKernels = {scaled, largest_magnitude, largest_value};

}  // namespace

const CastKernels& cast_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
