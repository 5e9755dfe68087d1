// Errors of a product whose epilogue is gelu, element by element.
#pragma once

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

}  // namespace numcheck::tolerance
