// Errors of a product whose epilogue is gelu, element by element.
#pragma once

#include <optional>
#include <span>

#include "model/error_model.hpp"

namespace numcheck::tolerance {

/// From A and S2 of z, which the model's coefficients take times the largest slope of gelu, to those of y = gelu(z):
///
///   B = G / 1.13 (b - g) A + own(z) + g D,    D = (b - g) A + bound_absolute,    A' = B / b
///
/// with b = bound_magnitude, g = gelu->bound, G the largest |gelu'| from z - D to z + D, and own(z) <= g |z| what gelu's own arithmetic
/// adds: an error of z is at most D, and only where gelu is steep does it become one of y. (z = -7, k = 1024, FP32: 1e-4 before, and
/// 4e-7 then.) V stays what it was: S2' = S2 plus what A' takes from it, so that sqrt(S2') may exceed A'. Elements that
/// may overflow keep both, since A tells which these are, and so do all of a model without V of S2.
/// `z` as op::OutputValues::argument; `magnitude` and `deviation` have A and sqrt(S2) on entry, A' and sqrt(S2') on return.
void narrow_to_gelu(const model::ErrorModel& model, std::span<const float> z, std::span<float> magnitude,
                    std::span<float> deviation);

/// Outputs y = gelu(z), and the A, S2 and V that they are compared with; V has the output's rounding, ulp(y)^2 / 12, where it is shorter
/// than FP32.
struct GeluOutputs {
  std::span<const float> z;
  std::span<const double> y;
  std::span<const float> magnitude, deviation;
};

/// What slopes of e on y may come from besides the errors' own.
struct GeluSlopes {
  /// Mean of y^2 / V min(1, own(z) / |y|): the roundings of 1 + tanh take that much alike, since it is 0 or one of a few numbers
  /// for many z.
  double lost = 0;
  /// sum |y| c / V / sum y^2 / V: an error s (z - a) of z, where a is added to the product, is one of s (y + z^2 phi(z) - a gelu'(z)),
  /// so that c <= z^2 phi(z) + |a gelu'(z)|. By tanh, z^2 phi(z) is next to the same.
  double addend = 0;
};

/// Nothing for a model without gelu, and if some V is 0.
[[nodiscard]] std::optional<GeluSlopes> slopes_of_gelu(const model::ErrorModel& model, const GeluOutputs& outputs);

}  // namespace numcheck::tolerance
