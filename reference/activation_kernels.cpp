// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "reference/activation_kernels.hpp"

#include "reference/activation_declared.hpp"
#include "reference/lanes.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

using op::Activation;
using TrackedDoubles = tolerance::TrackedOf<Doubles>;

constexpr double kTameSize = 0x1p30;  // as kTame

template <Activation f>
struct Value {
  static Doubles exact(const Doubles& x) { return exact_quick(x, f == Activation::silu ? 1 : kQuickFactor); }
  static TrackedDoubles declared(const Doubles& x) {
    return declared::quick(TrackedDoubles(x), f == Activation::silu ? 1 : kQuickFactor, declared::Sigmoid::accurate);
  }
};

template <Activation f>
void put(const double* p, double* value, float* magnitude, float* deviation) {
  const Doubles x = Doubles::load(p);
  Value<f>::exact(x).store(value);
  if (magnitude == nullptr) {
    return;
  }
  const TrackedDoubles y = Value<f>::declared(x);
  store_upward(y.b, magnitude);
  store_upward(root_of(y.v), deviation);
}

/// One exponential for all: of e = exp(-2 |z|), tanh |z| is 1 - 2 e / (1 + e), and x (1 + tanh z) / 2 is x / (1 + e), or
/// x e / (1 + e) of a negative z.
template <>
void put<Activation::gelu>(const double* p, double* value, float* magnitudes, float* deviation) {
  const TrackedDoubles x(Doubles::load(p)), z = declared::gelu_argument(x);
  const Doubles e = exponential_of(-2.0 * magnitude(z.y)), half = 1.0 / (1.0 + e), rest = e * half;
  (x.y * chosen(z.y < Doubles(0.0), rest, half)).store(value);
  if (magnitudes == nullptr) {
    return;
  }
  const Doubles t = hyperbolic_tangent_of(z.y, 2.0 * rest);
  const TrackedDoubles y = declared::gelu(x, declared::saturating_tanh(z, t, 2.0 * rest));
  store_upward(y.b, magnitudes);
  store_upward(root_of(y.v), deviation);
}

bool all_tame(const double* x, std::size_t count) {
  LaneMask wild;
  std::size_t i = 0;
  for (; i + kPartLanes <= count; i += kPartLanes) {
    wild = wild | LaneMask{~(magnitude(Doubles::load(x + i)) < Doubles(kTameSize)).set};
  }
  bool tame = !wild.any();
  for (; i < count; ++i) {
    tame &= x[i] < kTameSize && x[i] > -kTameSize;
  }
  return tame;
}

template <Activation f>
bool values_of(const double* x, std::size_t count, const NormRow& out) {
  std::size_t i = 0;
  for (; i + kPartLanes <= count; i += kPartLanes) {
    put<f>(x + i, out.value + i, after(out.magnitude, i), after(out.deviation, i));
  }
  if (i < count) {
    double rest[kPartLanes] = {}, value[kPartLanes];
    float magnitude[kPartLanes], deviation[kPartLanes];
    for (std::size_t l = 0; i + l < count; ++l) {
      rest[l] = x[i + l];
    }
    put<f>(rest, value, magnitude, deviation);
    for (std::size_t l = 0; i + l < count; ++l) {
      out.value[i + l] = value[l];
      if (out.magnitude != nullptr) {
        out.magnitude[i + l] = magnitude[l];
        out.deviation[i + l] = deviation[l];
      }
    }
  }
  return true;
}

bool values(Activation f, const double* x, std::size_t count, const NormRow& out) {
  if (!all_tame(x, count)) {
    return false;
  }
  switch (f) {
    case Activation::gelu:
      return values_of<Activation::gelu>(x, count, out);
    case Activation::silu:
      return values_of<Activation::silu>(x, count, out);
    case Activation::qgelu:
      return values_of<Activation::qgelu>(x, count, out);
    default:
      return false;
  }
}

constexpr ActivationKernels kKernels = {values};

}  // namespace

const ActivationKernels& activation_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
