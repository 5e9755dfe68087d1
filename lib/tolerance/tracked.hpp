// A number that carries the error that FP32 arithmetic may have made in computing it: an op's formula, evaluated on it
// instead of on double, yields the op's error model. Header-only, so that references need no library for it.
//
//   y  the value in double
//   b  deterministic bound: |computed - y| <= b for every correct FP32 evaluation of the formula, sums in any order
//   v  predicted E (computed - y)^2, rounding errors taken as independent; sums by the natural chain, the upper
//      envelope of practical schedules
//
// Every operator adds the error of one FP32 rounding (u = 2^-24) to the error c that its operands carry:
//
//   y         c                              b                              v
//   x + z     b_x + b_z                      c + u (|y| + c)                v_x + v_z + 0.18 u^2 y^2
//   x * z     |x| b_z + |z| b_x + b_x b_z    c + u (|y| + c) + eta          x^2 v_z + z^2 v_x + v_x v_z + 0.18 u^2 y^2
//   x / z     (b_x + |y| b_z) / (|z| - b_z)  c + u (|y| + c) + eta          (v_x + y^2 v_z) / z^2 + 0.18 u^2 y^2
//   f(x)      |f'| b_x                       c + 2 ulps u (|y| + c) + eta   f'^2 v_x + (2 ulps u y)^2 / 3
//   sum x_i   sum b_i                        c + (n - 1) u (sum |x_i| + c)  sum v_i + 0.18 u^2 chain
//
//   chain = max(n (S2 / 6 + y^2 / 3), sum s_t^2),  S2 = sum x_i^2,  s_t the running sums; v adds the square of the error
//           that the natural chain really makes where it exceeds 4 predicted standard deviations: equal terms, or terms
//           small against the sum's ulp, are all rounded in the same direction
//
// eta, which covers underflow, is min(|y| + b, eta) where a result is smaller than that; v has min(|y|, eta)^2, too.
// Source: tensor_core_numerics section 5.5 (measured on TransformerEngine and PyTorch kernels: |e|/b <= 0.999, rms of
// e / sqrt(v) between 0.04 and 1.003). 0.18 u^2 y^2 is the variance of rounding a log-uniform y to nearest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "core/codec.hpp"
#include "core/dtype.hpp"

namespace numcheck::tolerance {

inline constexpr double kUnit32 = 0x1p-24;      ///< u of FP32
inline constexpr double kRoundVariance = 0.18;  ///< of a rounding to nearest, in units of (u y)^2
inline constexpr double kUnderflow = 0x1p-149;  ///< eta: twice the largest error of a subnormal result
inline constexpr double kFlush = 0x1p-126;      ///< eta if subnormals may be flushed to zero

// What the templates below ask of a number, for double. Lanes of several numbers (reference/lanes.hpp) have the same.
inline double magnitude(double x) {
  return std::fabs(x);
}
inline double smaller(double x, double z) {
  return std::min(x, z);
}
inline double larger(double x, double z) {
  return std::max(x, z);
}
/// condition ? x : z
inline double chosen(bool condition, double x, double z) {
  return condition ? x : z;
}
inline bool is_finite(double x) {
  return std::isfinite(x);
}
inline double exponential_of(double x) {
  return std::exp(x);
}
/// condition ? yes() : no(); only the one that is asked for, where there is one condition.
template <class Yes, class No>
auto either(bool condition, const Yes& yes, const No& no) {
  return condition ? yes() : no();
}
inline double hyperbolic_tangent_of(double x) {
  return std::tanh(x);
}
/// x as an FP32 number, and back.
inline float narrowed(double x) {
  return static_cast<float>(x);
}
inline double widened(float x) {
  return static_cast<double>(x);
}

template <class T>
struct TrackedOf {
  T y{};
  T b{};
  T v{};

  constexpr TrackedOf() = default;
  constexpr TrackedOf(T exact) : y(exact) {}  // NOLINT(google-explicit-constructor): formulas mix both
  constexpr TrackedOf(T value, T bound, T variance) : y(value), b(bound), v(variance) {}

  friend TrackedOf operator-(const TrackedOf& x) { return {-x.y, x.b, x.v}; }
  friend TrackedOf operator+(const TrackedOf& x, const TrackedOf& z) {
    return rounded32(x.y + z.y, x.b + z.b, x.v + z.v);
  }
  friend TrackedOf operator-(const TrackedOf& x, const TrackedOf& z) { return x + -z; }
  friend TrackedOf operator*(const TrackedOf& x, const TrackedOf& z) {
    const T carried = magnitude(x.y) * z.b + magnitude(z.y) * x.b + x.b * z.b;
    const T variance = x.y * x.y * z.v + z.y * z.y * x.v + x.v * z.v;
    return rounded32(x.y * z.y, carried, variance).with_underflow(kUnderflow);
  }
  /// One correctly rounded division. An inexact divisor that may be zero has an infinite bound.
  friend TrackedOf operator/(const TrackedOf& x, const TrackedOf& z) {
    const T y = x.y / z.y;
    const T divisor = magnitude(z.y);
    const T carried = chosen((z.b >= divisor) & (z.b > T(0.0)), T(std::numeric_limits<double>::infinity()),
                             (x.b + magnitude(y) * z.b) / (divisor - z.b));
    const T variance = (x.v + y * y * z.v) / (divisor * divisor);
    return rounded32(y, carried, variance).with_underflow(kUnderflow);
  }
  friend TrackedOf& operator+=(TrackedOf& x, const TrackedOf& z) { return x = x + z; }
  friend TrackedOf& operator*=(TrackedOf& x, const TrackedOf& z) { return x = x * z; }
  template <class Condition>
  friend TrackedOf chosen(const Condition& condition, const TrackedOf& x, const TrackedOf& z) {
    return {chosen(condition, x.y, z.y), chosen(condition, x.b, z.b), chosen(condition, x.v, z.v)};
  }

  /// One FP32 rounding of y, which its operands' errors move by `carried` at most.
  static TrackedOf rounded32(T y, T carried, T variance) {
    const T uy = kUnit32 * y;
    return {y, carried + kUnit32 * (magnitude(y) + carried), variance + kRoundVariance * uy * uy};
  }
  /// A result this small may become subnormal, or zero: no more is lost than it has.
  [[nodiscard]] TrackedOf with_underflow(double eta) const {
    const T lost = smaller(magnitude(y), T(eta));
    return {y, b + smaller(magnitude(y) + b, T(eta)), v + lost * lost};
  }
};

using Tracked = TrackedOf<double>;

namespace detail {

inline Tracked rounded32(double y, double carried, double variance) {
  return Tracked::rounded32(y, carried, variance);
}
inline Tracked with_underflow(const Tracked& x, double eta) {
  return x.with_underflow(eta);
}

}  // namespace detail

/// True if x z is infinity times a number that may be zero: NaN on one device and infinite on another.
inline bool indeterminate(double /*x*/, double /*z*/) {
  return false;
}
inline bool indeterminate(const Tracked& x, const Tracked& z) {
  const auto may_be_zero = [](const Tracked& a) { return a.b > 0 && std::fabs(a.y) <= a.b; };
  return (std::isinf(x.y) && may_be_zero(z)) || (std::isinf(z.y) && may_be_zero(x));
}

/// Only the value, for either scalar.
inline double value_of(double x) {
  return x;
}
inline double value_of(const Tracked& x) {
  return x.y;
}

/// Exact scaling by a power of two.
inline double scaled_exactly(double x, double power) {
  return x * power;
}
template <class T>
TrackedOf<T> scaled_exactly(const TrackedOf<T>& x, double power) {
  return {x.y * power, x.b * std::fabs(power), x.v * power * power};
}

/// y = f(x) by a math library function that is documented to err by at most `ulps` units in the last place; `slope`
/// bounds |f'| near x. `eta` is kFlush if the function may flush subnormal results.
template <class T>
TrackedOf<T> function_of(const TrackedOf<T>& x, std::type_identity_t<T> y, std::type_identity_t<T> slope,
                         std::type_identity_t<T> ulps, double eta = kUnderflow) {
  constexpr double kSecondOrder = 1 + 1e-3;  // b_x is small compared with the scale on which f' changes
  const T unit = 2 * kUnit32 * ulps;
  const T carried = chosen(x.b == T(0.0), T(0.0), magnitude(slope) * x.b * kSecondOrder);
  const T variance = chosen(x.v == T(0.0), T(0.0), slope * slope * x.v);
  const TrackedOf<T> result{y, carried + unit * (magnitude(y) + carried), variance + unit * y * unit * y / 3};
  return result.with_underflow(eta);
}

inline double square_root(double x) {
  return std::sqrt(x);
}
inline Tracked square_root(const Tracked& x) {
  const double y = std::sqrt(x.y);
  return detail::rounded32(y, x.b == 0 ? 0 : y - std::sqrt(std::max(x.y - x.b, 0.0)), x.v == 0 ? 0 : x.v / (4 * x.y));
}

/// 1 / sqrt(x); rsqrtf is documented with 2 ulp (CUDA C++ Programming Guide, mathematical functions).
inline double reciprocal_root(double x) {
  return 1 / std::sqrt(x);
}
inline Tracked reciprocal_root(const Tracked& x) {
  const double y = 1 / std::sqrt(x.y);
  const double unit = 2 * kUnit32 * 2;
  const double low = x.y - x.b;  // the function is steepest at the low end: no second-order term is missing
  const double carried = x.b == 0 ? 0 : low > 0 ? 1 / std::sqrt(low) - y : std::numeric_limits<double>::infinity();
  const double slope = y / (2 * x.y);
  return {y, carried + unit * (y + carried), slope * slope * x.v + unit * y * unit * y / 3};
}

/// exp(x); expf: 2 ulp. With `fast` like __expf: 2 + 1.173 |x| ulp, and results below 2^-126 may be flushed.
inline double exponential(double x, bool /*fast*/ = false) {
  return std::exp(x);
}
template <class T>
TrackedOf<T> exponential(const TrackedOf<T>& x, bool fast = false) {
  const T y = exponential_of(x.y);
  return function_of(x, y, y, fast ? 2 + 1.173 * magnitude(x.y) : T(2.0), fast ? kFlush : kUnderflow);
}

/// tanh(x); tanhf: 2 ulp.
inline double hyperbolic_tangent(double x) {
  return std::tanh(x);
}
template <class T>
TrackedOf<T> hyperbolic_tangent(const TrackedOf<T>& x) {
  const T y = hyperbolic_tangent_of(x.y);
  return function_of(x, y, 1 - y * y, T(2.0));
}

/// max of both; no rounding.
inline double larger_of(double x, double z) {
  return std::fmax(x, z);
}
inline Tracked larger_of(const Tracked& x, const Tracked& z) {
  return {std::fmax(x.y, z.y), std::max(x.b, z.b), std::max(x.v, z.v)};
}

/// A rounding to `dtype` that the op itself defines. Far enough from a tie every correct device rounds the same way,
/// and the result is exact again; near one it may differ by an ulp.
inline double rounded_to(double x, core::Dtype dtype) {
  return core::round_to(x, dtype);
}
inline Tracked rounded_to(const Tracked& x, core::Dtype dtype) {
  const double y = core::round_to(x.y, dtype);
  if (core::round_to(x.y - x.b, dtype) == y && core::round_to(x.y + x.b, dtype) == y) {
    return {y};
  }
  // e before it, and the two roundings are an ulp apart at most.
  const double ulp = core::ulp(std::fabs(x.y) + x.b, dtype);
  return {y, x.b + ulp, x.v + ulp * ulp};
}

/// Sum of any number of terms, in any order on the device.
template <class Scalar>
class Sum;

/// Compensated (Neumaier), so that 10^6 terms cost no digits.
template <class T>
class CompensatedSum {
 public:
  void add(T term) {
    const T next = total_ + term;
    lost_ += chosen(magnitude(total_) >= magnitude(term), (total_ - next) + term, (term - next) + total_);
    total_ = next;
  }
  [[nodiscard]] T result() const { return chosen(is_finite(total_), total_ + lost_, total_); }

 private:
  T total_{};
  T lost_{};
};

template <>
class Sum<double> : public CompensatedSum<double> {};

template <class T>
class Sum<TrackedOf<T>> {
 public:
  void add(const TrackedOf<T>& term) {
    value_.add(term.y);
    absolute_ += magnitude(term.y);
    squares_ += term.y * term.y;
    running_ += term.y;
    running_squares_ += running_ * running_;
    const Narrow stored = narrowed(term.y);
    chain_ += stored;
    chain_exact_ += widened(stored);
    bound_ += term.b;
    variance_ += term.v;
    ++count_;
  }
  [[nodiscard]] TrackedOf<T> result() const {
    const double n = static_cast<double>(count_);
    const T y = value_.result();
    const T chain = larger(n * (squares_ / 6 + y * y / 3), running_squares_);
    const T predicted = kRoundVariance * kUnit32 * kUnit32 * chain;
    const T drift = widened(chain_) - chain_exact_;
    constexpr double kAccident = 4;  // standard deviations of a normal variable: once in 16 000 sums
    const T drifted = chosen(drift * drift > kAccident * kAccident * predicted, drift * drift, T(0.0));
    return {y, count_ == 0 ? T(0.0) : bound_ + (n - 1) * kUnit32 * (absolute_ + bound_),
            count_ < 2 ? variance_ : variance_ + predicted + drifted};
  }

 private:
  using Narrow = decltype(narrowed(T{}));

  CompensatedSum<T> value_;
  T absolute_{}, squares_{}, running_{}, running_squares_{}, bound_{}, variance_{};
  T chain_exact_{};  ///< sum of the terms as FP32 numbers
  Narrow chain_{};   ///< the same, added in FP32 in natural order
  std::size_t count_ = 0;
};

}  // namespace numcheck::tolerance
