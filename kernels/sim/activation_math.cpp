#include "kernels/sim/activation_math.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/codec.hpp"

namespace numcheck::kernels::sim {
namespace {

using op::Activation;

constexpr float kLinear = 0.79788456F;
constexpr float kRootHalf = 0.70710678F;
constexpr float kDensity = 0.39894228F;
constexpr float kQuick = 1.702F;
constexpr float kWrongCubic = 0.04F;

/// One evaluation of a function or derivative, with its fault.
class Evaluation {
 public:
  explicit Evaluation(MathFault fault) : fault_(fault) {}

  [[nodiscard]] float gelu(float x) const {
    const float cubic = fault_ == MathFault::gelu_constant ? kLinear * kWrongCubic : 0.03567741F;
    const float z = x * (kLinear + cubic * x * x);
    return x * (0.5F + 0.5F * inner(std::tanh(halved(z))));
  }

  [[nodiscard]] float gelu_derivative(float x) const {
    const float cubic = fault_ == MathFault::gelu_constant ? kWrongCubic : 0.044715F;
    const float slope = fault_ == MathFault::gelu_constant ? 3 * kLinear * kWrongCubic : 0.1070322243F;
    const float t = inner(std::tanh(halved(kLinear * x * (1.0F + cubic * x * x))));
    const float rise = (1.0F - t * t) * (kLinear + slope * x * x);
    return signed_part(0.5F * x * halved(rise)) + 0.5F * (1.0F + t);
  }

  [[nodiscard]] float gelu_erf(float x) const { return 0.5F * x * (1.0F + inner(std::erf(kRootHalf * x))); }

  [[nodiscard]] float gelu_erf_derivative(float x) const {
    const float density = kDensity * std::exp(-0.5F * (x * x));
    return 0.5F * (1.0F + inner(std::erf(kRootHalf * x))) + signed_part(x * density);
  }

  [[nodiscard]] float quick(float x, float alpha) const { return x * sigmoid(alpha * x); }

  [[nodiscard]] float quick_derivative(float x, float alpha) const {
    const float s = sigmoid(alpha * x);
    return signed_part(alpha * x * (s * (1.0F - s))) + s;
  }

  [[nodiscard]] float srelu_derivative(float x) const {
    return std::fmax(fault_ == MathFault::factor_2_missing ? x : 2.0F * x, 0.0F);
  }

 private:
  [[nodiscard]] float inner(float x) const {
    const bool rounds = fault_ == MathFault::bf16_intermediate;
    return rounds ? static_cast<float>(core::round_to(static_cast<double>(x), core::Dtype::bf16)) : x;
  }
  [[nodiscard]] float sigmoid(float t) const { return inner(1.0F / (1.0F + std::exp(-t))); }
  [[nodiscard]] float signed_part(float x) const { return fault_ == MathFault::derivative_sign ? -x : x; }
  [[nodiscard]] float halved(float x) const { return fault_ == MathFault::factor_2_missing ? 0.5F * x : x; }

  MathFault fault_;
};

/// The function that runs instead of the requested one.
Activation substituted(Activation function, MathFault fault) {
  if (fault == MathFault::erf_for_tanh) {
    return Activation::gelu_erf;
  }
  return fault == MathFault::tanh_for_erf ? Activation::gelu : function;
}

}  // namespace

MathFault math_fault(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, MathFault>, 7> kNames = {{
      {"erf_for_tanh", MathFault::erf_for_tanh},
      {"tanh_for_erf", MathFault::tanh_for_erf},
      {"gelu_constant", MathFault::gelu_constant},
      {"factor_2_missing", MathFault::factor_2_missing},
      {"bf16_intermediate", MathFault::bf16_intermediate},
      {"derivative_sign", MathFault::derivative_sign},
      {"clamp_missing", MathFault::clamp_missing},
  }};
  const auto* const found = std::ranges::find(kNames, name, &std::pair<std::string_view, MathFault>::first);
  return found == kNames.end() ? MathFault::none : found->second;
}

float ActivationMath::value(float x) const {
  const Evaluation evaluate(fault);
  switch (substituted(function, fault)) {
    case Activation::gelu:
      return evaluate.gelu(x);
    case Activation::gelu_erf:
      return evaluate.gelu_erf(x);
    case Activation::silu:
      return evaluate.quick(x, 1);
    case Activation::relu:
      return std::fmax(x, 0.0F);
    case Activation::qgelu:
      return evaluate.quick(x, kQuick);
    case Activation::srelu:
      return x > 0 ? x * x : 0;
    case Activation::clamped:
      break;
  }
  return evaluate.quick(fault == MathFault::clamp_missing ? x : std::fmin(x, limit), alpha);
}

float ActivationMath::derivative(float x) const {
  const Evaluation evaluate(fault);
  switch (substituted(function, fault)) {
    case Activation::gelu:
      return evaluate.gelu_derivative(x);
    case Activation::gelu_erf:
      return evaluate.gelu_erf_derivative(x);
    case Activation::silu:
      return evaluate.quick_derivative(x, 1);
    case Activation::relu:
      return x > 0 ? 1 : 0;
    case Activation::qgelu:
      return evaluate.quick_derivative(x, kQuick);
    case Activation::srelu:
      return evaluate.srelu_derivative(x);
    case Activation::clamped:
      break;
  }
  return fault == MathFault::clamp_missing || x <= limit ? evaluate.quick_derivative(x, alpha) : 0;
}

float ActivationMath::factor(float b) const {
  if (function != Activation::clamped) {
    return b;
  }
  return (fault == MathFault::clamp_missing ? b : std::fmin(std::fmax(b, -limit), limit)) + offset;
}

bool ActivationMath::factor_follows(float b) const {
  return function != Activation::clamped || fault == MathFault::clamp_missing || (b <= limit && b >= -limit);
}

ActivationMath activation_math(const op::ActivationParams& params, std::string_view fault) {
  return {.function = op::activation_kind(params.kind).function,
          .limit = static_cast<float>(params.limit),
          .alpha = static_cast<float>(params.alpha),
          .offset = static_cast<float>(params.offset),
          .fault = math_fault(fault)};
}

}  // namespace numcheck::kernels::sim
