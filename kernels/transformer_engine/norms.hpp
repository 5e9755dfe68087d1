// Bindings of the row normalisations to TransformerEngine's own kernels (not to cuDNN's behind the same functions).
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::te {

/// nvte_layernorm_fwd, nvte_layernorm_bwd, nvte_rmsnorm_fwd, nvte_rmsnorm_bwd and nvte_rmsnorm_bwd_add. One is added to
/// a zero-centred gamma in FP32. NVTE_NORM_FWD_USE_CUDNN and NVTE_NORM_BWD_USE_CUDNN are the user's business.
[[nodiscard]] const Binding& layernorm_fwd();
[[nodiscard]] const Binding& layernorm_bwd();
[[nodiscard]] const Binding& rmsnorm_fwd();
[[nodiscard]] const Binding& rmsnorm_bwd();

}  // namespace numcheck::kernels::te
