// Own kernels: one binding per op.
#pragma once

#include "kernels/contract/binding.hpp"
#include "op/ops.hpp"

namespace numcheck::kernels::cuda {

/// All modes and shapes of each op; of `gemm`, only the modes fp32, fp32_pedantic, bf16 and fp16.
#define NUMCHECK_DECLARE(name) [[nodiscard]] const Binding& name();
NUMCHECK_OPS(NUMCHECK_DECLARE)
#undef NUMCHECK_DECLARE

}  // namespace numcheck::kernels::cuda
