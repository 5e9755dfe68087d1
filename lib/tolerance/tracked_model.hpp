// The error model of ops whose reference carries {y, B, V} per element.
#pragma once

#include "model/error_model.hpp"

namespace numcheck::tolerance {

/// B and V unchanged (op::OutputValues::magnitude and deviation), plus one FP32 product if the output is quantised
/// (code = sat(RN(RN32(y * scale)))). kappa = 2: the measured z-rms of correct kernels is 0.04 to 1.003.
/// Source: tensor_core_numerics section 5.5.
[[nodiscard]] model::ErrorModel tracked_error_model(const model::ModelRequest& request, std::string_view port);

/// Widens the variance of sums, of model.reduction terms, over inputs whose signs come in runs. V is that of the
/// natural chain, whose partial sums stay small where signs alternate; another admissible order may first add the terms
/// that share a sign. With A = sum |terms| the squares of its partial sums add up to n A^2 / 3 at most, so
/// V <= 0.18 u^2 n A^2 / 3, and B = n u A: V <= (0.06 / n) B^2.
void widen_for_order(const model::ModelRequest& request, model::ErrorModel& model);

}  // namespace numcheck::tolerance
