// Scales of blocks from their amaxes. The rules are in op/quantize.hpp.
#pragma once

#include "kernels/cuda/element.cuh"

namespace numcheck::kernels::cuda {

inline constexpr int kMantissaBits = 23;
inline constexpr unsigned kMantissaMask = (1u << kMantissaBits) - 1;

template <class T>
struct Largest;
template <>
struct Largest<__nv_fp8_e4m3> {
  static constexpr float value = 448.0f;
  static constexpr unsigned exponent = 8;  ///< floor(log2 value)
};
template <>
struct Largest<__nv_fp8_e5m2> {
  static constexpr float value = 57344.0f;
  static constexpr unsigned exponent = 15;
};
template <>
struct Largest<float> {
  static constexpr float value = 3.402823466e38f;
};
template <>
struct Largest<__nv_bfloat16> {
  static constexpr float value = 3.3895313892515355e38f;
};
template <>
struct Largest<__half> {
  static constexpr float value = 65504.0f;
};

/// 2^(e - 127), which is subnormal for e = 0.
__device__ __forceinline__ float power_of(unsigned e) {
  return __uint_as_float(e == 0 ? 1u << (kMantissaBits - 1) : e << kMantissaBits);
}

/// An FP32 scale, and RN32(1 / scale).
struct NumberScale {
  float scale, inverse;
};

/// Of codes of format Out, of elements of format In.
template <class In, class Out>
__device__ __forceinline__ NumberScale divided_scale(float a, bool power_of_two) {
  float scale = __fdiv_rn(Largest<Out>::value, a);
  scale = isinf(scale) ? Largest<In>::value : scale;
  scale = power_of_two ? __uint_as_float(__float_as_uint(scale) & ~kMantissaMask) : scale;
  return {scale, __frcp_rn(scale)};
}

/// The same. A power of two follows from exponents: with a = m 2^e and MAX = 1.75 2^E, MAX / a is 2^(E - e) or more if m <= 1.75,
/// and rounds to less than that otherwise, since the next larger m gives 1 - 1.14 2^-24.
template <class In, class Out>
__device__ __forceinline__ NumberScale number_scale(float amax, float epsilon, bool power_of_two) {
  constexpr unsigned kMostMantissa = 3u << (kMantissaBits - 2);  // of 1.75
  constexpr unsigned kSum = 254, kMostExponent = 254;
  const float a = fmaxf(amax, epsilon);
  if (a == 0.0f || isinf(a)) {
    return {1.0f, 1.0f};
  }
  const unsigned bits = __float_as_uint(a), exponent = bits >> kMantissaBits;
  const unsigned e = kSum + Largest<Out>::exponent - exponent - ((bits & kMantissaMask) > kMostMantissa ? 1 : 0);
  if (power_of_two && exponent != 0 && e <= kMostExponent) {
    return {__uint_as_float(e << kMantissaBits), power_of(kSum - e)};
  }
  return divided_scale<In, Out>(a, power_of_two);
}

/// The smallest E8M0 number at or above `value` >= 0: as cvt.rp.satfinite.ue8m0x2.f32 where devices have it.
__device__ __forceinline__ unsigned e8m0_at_or_above(float value) {
  constexpr unsigned kMost = 0xFE;          // 2^127
  constexpr unsigned kSmallest = 0x400000;  // 2^-127 as a subnormal FP32 number
  if (isinf(value)) {
    return kMost;
  }
  const unsigned bits = __float_as_uint(value);
  const unsigned exponent = bits >> kMantissaBits;
  const unsigned mantissa = bits & kMantissaMask;
  const bool exact = mantissa == 0 || (exponent == 0 && mantissa <= kSmallest);
  return exact || exponent == kMost ? exponent : exponent + 1;
}

/// e of the scale 2^(e - 127).
template <class Out>
__device__ __forceinline__ unsigned exponent_scale(float amax, bool round_up) {
  if (round_up || isinf(amax)) {
    constexpr float kReciprocal = 1.0f / Largest<Out>::value;
    return e8m0_at_or_above(amax * kReciprocal);
  }
  const unsigned exponent = __float_as_uint(amax) >> kMantissaBits;  // that of a subnormal number is below all others
  return exponent > Largest<Out>::exponent ? exponent - Largest<Out>::exponent : 0;
}

}  // namespace numcheck::kernels::cuda
