// The parts of softmax, element by element, over a scalar: tolerance::Tracked or several of them. softmax_row.hpp has the row, and
// what becomes of numbers so large that first-order errors do not do.
#pragma once

#include "tolerance/tracked.hpp"

namespace numcheck::reference {

/// An error of a difference from which on its exponential is off by more than the first order says.
inline constexpr double kSmallExponentError = 0x1p-10;

/// score - maximum. `bound`: by how much the device's maximum may be off; the difference that it rounds is larger by as much.
template <class T>
tolerance::TrackedOf<T> softmax_difference(const tolerance::TrackedOf<T>& score, const T& maximum, const T& bound) {
  tolerance::TrackedOf<T> d = score - tolerance::TrackedOf<T>(maximum);
  d.b += tolerance::kUnit32 * bound;
  return d;
}

/// How many ulps exp(d) is off by.
template <class T>
T softmax_ulps(const tolerance::TrackedOf<T>& d) {
  using tolerance::magnitude;
  return 2 + 1.173 * (magnitude(d.y) + d.b);
}

/// exp(d) with the function's own error, and what d's adds: `carried`.
template <class T>
tolerance::TrackedOf<T> softmax_exponential(const tolerance::TrackedOf<T>& d, const T& y, const T& carried) {
  const T ulps = softmax_ulps(d);
  tolerance::TrackedOf<T> e =
      tolerance::function_of(tolerance::TrackedOf<T>(d.y, T(0.0), d.v), y, y, ulps, tolerance::kFlush);
  e.b += carried * (1 + 2 * tolerance::kUnit32 * ulps);
  return e;
}

/// What a small error of d adds to y = exp(d).
template <class T>
T softmax_carried(const tolerance::TrackedOf<T>& d, const T& y) {
  return y * d.b * (1 + kSmallExponentError);
}

/// The device's result is between 0 and 1 + a few roundings, however uncertain the scores are.
template <class T>
tolerance::TrackedOf<T> softmax_probability(const tolerance::TrackedOf<T>& product) {
  using tolerance::chosen;
  const T largest(1 + 0x1p-16);
  const tolerance::TrackedOf<T> y = tolerance::function_of(product, product.y, T(1.0), T(0.0), tolerance::kFlush);
  return {y.y, chosen(y.b < largest, y.b, largest), chosen(y.v < largest, y.v, largest)};
}

}  // namespace numcheck::reference
