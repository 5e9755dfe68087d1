// The error model of ops whose reference carries {y, B, V} per element.
#pragma once

#include "core/dtype.hpp"
#include "model/error_model.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// B and V unchanged (op::OutputValues::magnitude and deviation), plus one FP32 product if the output is quantised
/// (code = sat(RN(RN32(y * scale)))). kappa = 2: the measured z-rms of correct kernels is 0.04 to 1.003.
/// Source: tensor_core_numerics section 5.5.
[[nodiscard]] model::ErrorModel tracked_error_model(const model::ModelRequest& request, std::string_view port);

/// The slope of errors that are certain, B = sqrt(V), and may have one sign in all elements: sum w |y| B / sum w y^2 over these, and
/// over all, with the weights of gate G3 for an output of that 16-bit format. 1 + erf(x) is 0 for every x below -5.7, which is 3 %
/// of gelu's derivative there. `values` may be some of the elements.
[[nodiscard]] double certain_slope(const op::OutputValues& values, core::Dtype format);

/// Widens the variance of sums, of model.reduction terms, over inputs whose signs come in runs. V is that of the
/// natural chain, whose partial sums stay small where signs alternate; another admissible order may first add the terms
/// that share a sign. With A = sum |terms| the squares of its partial sums add up to n A^2 / 3 at most, so
/// V <= 0.18 u^2 n A^2 / 3, and B = n u A: V <= (0.06 / n) B^2.
void widen_for_order(const model::ModelRequest& request, model::ErrorModel& model);

}  // namespace numcheck::tolerance
