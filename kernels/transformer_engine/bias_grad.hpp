// Binding of the op `bias_grad` to nvte_quantize_dbias and its relatives.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::te {

/// The functions quantise while they sum: without fusion the codes go into the workspace. They also want a transposed
/// output below sm_100, which goes there too.
[[nodiscard]] const Binding& bias_grad();

}  // namespace numcheck::kernels::te
