// What becomes of a product's errors after the sum: scale, addend, bias, activation.
#pragma once

#include "model/error_model.hpp"
#include "tolerance/gemm_request.hpp"

namespace numcheck::tolerance {

/// Errors f s of the products' sum s do not shrink when C and bias cancel it: s^2 = S2 + r^2 A^2. Nor do those of partial sums,
/// which reach A at most, when runs of the other sign follow: r = 1.
///   V     += r^2 (value + coherent) A^2
///   slope <= f sum w |y s| / sum w y^2 <= f r sqrt(sum w A^2 / sum w y^2)      (Cauchy and Schwarz)
/// Sums with little mean have s^2 = S2 or little more. Beside a C or bias that does have one, or where relu leaves only what exceeds a negative
/// bias, y is another number than s, and f s has a slope of either sign on it. So it has for gelu, which falls below z = -0.75: there
/// |y| grows as |z| shrinks.
void add_cancellation(const GemmRequest& g, model::ErrorModel& model);

/// Scale, addend, bias and activation, each operation rounded; z = fma(beta, c, scale acc) + bias or in more steps.
/// Factors (alpha, products of scales) are rounded once for all elements: they show as a slope. So does a constant
/// addend: sums within a binade lie on one grid, from which its distance is always the same, up to u |z|.
void add_epilogue(const GemmRequest& g, model::ErrorModel& model);

}  // namespace numcheck::tolerance
