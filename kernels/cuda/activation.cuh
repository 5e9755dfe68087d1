// The activation functions in FP32, as TransformerEngine writes them (common/util/math.h): plain expf, tanhf and
// division, no fast math. gelu_erf is PyTorch's.
#pragma once

#include "kernels/cuda/activation_kernel.hpp"

namespace numcheck::kernels::cuda {

/// 1 / (1 + exp(-t)): 0 where exp(-t) overflows, below t = -88.72.
__device__ __forceinline__ float sigmoid(float t) {
  return 1.0f / (1.0f + expf(-t));
}

/// x s(alpha x).
__device__ __forceinline__ float quick(float x, float alpha) {
  return x * sigmoid(alpha * x);
}
__device__ __forceinline__ float quick_derivative(float x, float alpha) {
  const float t = alpha * x;
  const float s = sigmoid(t);
  return t * (s * (1.0f - s)) + s;
}

__device__ __forceinline__ float gelu(float x) {
  return x * (0.5f + 0.5f * tanhf(x * (0.79788456f + 0.03567741f * x * x)));
}
__device__ __forceinline__ float gelu_derivative(float x) {
  const float t = tanhf(0.79788456f * x * (1.0f + 0.044715f * x * x));
  const float rise = (1.0f - t * t) * (0.79788456f + 0.1070322243f * x * x);
  return 0.5f * x * rise + 0.5f * (1.0f + t);
}

__device__ __forceinline__ float gelu_erf(float x) {
  return 0.5f * x * (1.0f + erff(0.70710678f * x));
}
__device__ __forceinline__ float gelu_erf_derivative(float x) {
  const float density = 0.39894228f * expf(-0.5f * (x * x));
  return 0.5f * (1.0f + erff(0.70710678f * x)) + x * density;
}

/// f(x). fmaxf and fminf drop a NaN.
template <Function function>
__device__ __forceinline__ float activate(float x, const Clamp& clamp) {
  switch (function) {
    case Function::gelu:
      return gelu(x);
    case Function::gelu_erf:
      return gelu_erf(x);
    case Function::silu:
      return quick(x, 1.0f);
    case Function::relu:
      return fmaxf(x, 0.0f);
    case Function::qgelu:
      return quick(x, 1.702f);
    case Function::srelu:
      return x > 0.0f ? x * x : 0.0f;
    case Function::clamped:
      break;
  }
  return quick(fminf(x, clamp.limit), clamp.alpha);
}

/// f'(x).
template <Function function>
__device__ __forceinline__ float derivative(float x, const Clamp& clamp) {
  switch (function) {
    case Function::gelu:
      return gelu_derivative(x);
    case Function::gelu_erf:
      return gelu_erf_derivative(x);
    case Function::silu:
      return quick_derivative(x, 1.0f);
    case Function::relu:
      return x > 0.0f ? 1.0f : 0.0f;
    case Function::qgelu:
      return quick_derivative(x, 1.702f);
    case Function::srelu:
      return fmaxf(2.0f * x, 0.0f);
    case Function::clamped:
      break;
  }
  return x <= clamp.limit ? quick_derivative(x, clamp.alpha) : 0.0f;
}

/// The second factor of a gated kind.
template <Function function>
__device__ __forceinline__ float second_factor(float b, const Clamp& clamp) {
  return function == Function::clamped ? fminf(fmaxf(b, -clamp.limit), clamp.limit) + clamp.offset : b;
}

/// Whether the second factor varies with b there: it is not clamped.
template <Function function>
__device__ __forceinline__ bool follows(float b, const Clamp& clamp) {
  return function != Function::clamped || (b <= clamp.limit && b >= -clamp.limit);
}

/// A function as a type.
template <Function value>
struct FunctionTag {
  static constexpr Function function = value;
};

/// f(FunctionTag<function>{}).
template <class F>
auto visit_function(Function function, F&& f) {
  switch (function) {
    case Function::gelu:
      return f(FunctionTag<Function::gelu>{});
    case Function::gelu_erf:
      return f(FunctionTag<Function::gelu_erf>{});
    case Function::silu:
      return f(FunctionTag<Function::silu>{});
    case Function::relu:
      return f(FunctionTag<Function::relu>{});
    case Function::qgelu:
      return f(FunctionTag<Function::qgelu>{});
    case Function::srelu:
      return f(FunctionTag<Function::srelu>{});
    case Function::clamped:
      break;
  }
  return f(FunctionTag<Function::clamped>{});
}

}  // namespace numcheck::kernels::cuda
