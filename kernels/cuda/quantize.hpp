// Bindings of the FP8 casts and of the transpose to the own kernels.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

[[nodiscard]] const Binding& quantize();
[[nodiscard]] const Binding& dequantize();
[[nodiscard]] const Binding& transpose();

}  // namespace numcheck::kernels::cuda
