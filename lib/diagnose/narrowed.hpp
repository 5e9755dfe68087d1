// Numbers of inputs in a narrower format, and what to do where a product had them so.
#pragma once

#include <string_view>

#include "core/codec.hpp"
#include "prepare/given_inputs.hpp"

namespace numcheck::diagnose {

/// The elements rounded; null if that changes none.
[[nodiscard]] prepare::SharedDoubles narrowed(const prepare::SharedDoubles& from, core::Dtype to,
                                              core::Rounding rounding);

inline constexpr std::string_view kForbidTf32 =
    "Forbid it: NVIDIA_TF32_OVERRIDE=0 for every library; PyTorch torch.backends.cuda.matmul.allow_tf32 = False; JAX "
    "jax.default_matmul_precision(\"highest\"); Triton input_precision=\"ieee\". Or keep it, and compare with the mode "
    "tf32.";

}  // namespace numcheck::diagnose
