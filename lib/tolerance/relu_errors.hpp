// Errors of a product whose epilogue is relu, element by element.
#pragma once

#include <span>

#include "model/error_model.hpp"

namespace numcheck::tolerance {

/// Where z + B <= 0, with B of z, no sum that is as far below zero comes out of relu as anything but 0: A becomes
///
///   A' = -bound_absolute / bound_magnitude,    so that B = bound_magnitude A' + bound_absolute is next to 0,
///
/// and S2 = 0. Elsewhere, and where sums may overflow or nothing is known, both stay.
/// `z` as op::OutputValues::argument; `magnitude` and `deviation` have A and sqrt(S2).
void narrow_to_relu(const model::ErrorModel& model, std::span<const float> z, std::span<float> magnitude,
                    std::span<float> deviation);

}  // namespace numcheck::tolerance
