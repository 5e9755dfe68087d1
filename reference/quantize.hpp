// FP8 casts and transposes: every output is defined bit for bit.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::QuantizeParams, op::DequantizeParams and op::TransposeParams for the formulas.
[[nodiscard]] op::Reference quantize_reference();
[[nodiscard]] op::Reference dequantize_reference();
[[nodiscard]] op::Reference transpose_reference();

}  // namespace numcheck::reference
