// The activation functions of TransformerEngine and the kinds of ops built from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::op {

/// The function f of an activation. All arithmetic is FP32, the constants are FP32 numbers:
///
///   gelu      x (1/2 + 1/2 tanh(x (0.79788456 + 0.03567741 x^2)))          the tanh form, never erf
///   gelu_erf  x (1/2 + 1/2 erf(0.70710678 x))                              not in TransformerEngine
///   silu      x s(x), s(t) = 1 / (1 + exp(-t))
///   relu      max(x, 0)
///   qgelu     x s(1.702 x)
///   srelu     x^2 for x > 0, else 0
///   clamped   m s(alpha m), m = min(x, limit)                              the gate of clamped_swiglu
///
/// and their derivatives f':
///
///   gelu      1/2 x (1 - t^2)(0.79788456 + 0.1070322243 x^2) + 1/2 (1 + t), t = tanh(0.79788456 x (1 + 0.044715 x^2))
///   gelu_erf  1/2 (1 + erf(0.70710678 x)) + x 0.39894228 exp(-x^2/2)
///   silu      x s (1 - s) + s
///   relu      1 for x > 0, else 0
///   qgelu     1.702 x s (1 - s) + s, s = s(1.702 x)
///   srelu     max(2 x, 0)
///   clamped   alpha x s (1 - s) + s, s = s(alpha x), for x <= limit; else 0
///
/// NaN: relu, srelu, their derivatives and the derivative of clamped return 0, min(NaN, limit) is limit; the others
/// propagate it.
/// Source: TransformerEngine common/util/math.h; gelu_erf: torch.nn.functional.gelu, approximate="none".
enum class Activation : std::uint8_t { gelu, gelu_erf, silu, relu, qgelu, srelu, clamped };

/// A kind of activation op.
struct ActivationKind {
  std::string_view name;
  Activation function = Activation::gelu;
  /// y = f(a) b instead of f(x): the input has a row of 2 hidden columns, a before b. With Activation::clamped the
  /// second factor is min(max(b, -limit), limit) + offset.
  bool gated = false;
  bool rational = false;  ///< integers in, integers out
};

/// The kind with that name; throws core::InternalError if there is none.
[[nodiscard]] const ActivationKind& activation_kind(std::string_view name);

/// Names of all kinds, the ungated ones first.
[[nodiscard]] std::vector<std::string_view> activation_names();

}  // namespace numcheck::op
