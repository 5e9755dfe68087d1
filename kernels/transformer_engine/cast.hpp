// Bindings of quantize, dequantize and transpose.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::te {

/// nvte_quantize with a per-tensor scale (rowwise, or both layouts in one call), nvte_dequantize, nvte_transpose.
[[nodiscard]] const Binding& quantize();
[[nodiscard]] const Binding& dequantize();
[[nodiscard]] const Binding& transpose();

}  // namespace numcheck::kernels::te
