// Products of operands of few bits, given or rounded to them.
#pragma once

#include <array>

#include "core/codec.hpp"
#include "op/gemm.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// A product of two TF32 numbers has 22 bits, that of one and a power of two 11: sums of few such products, or of sparse
/// operands, end in zeros although those of the unrounded operands do not. For 10, 13 and 16 zeros: the share of such
/// sums, times alpha, among up to 128 outputs that are spread over rows and columns, plus three of its standard errors; 1 if
/// that is more than a half. Equal results are one: where all are, chance alone may have ended them in zeros.
[[nodiscard]] std::array<double, 3> few_bit_shares(const op::GemmParams& params, const op::Operand& a,
                                                   const op::Operand& b, core::Dtype format, core::Rounding rounding);

/// How many of two operands have numbers that shorter formats do not hold: FP32 numbers that TF32 does not, shorter ones
/// that are no powers of two; by up to 2^16 that are spread over each. At least 1: what then errs is a sum.
[[nodiscard]] double rounded_operands(const op::Operand& a, const op::Operand& b, bool fp32_storage);

}  // namespace numcheck::tolerance
