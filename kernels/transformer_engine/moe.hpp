// Bindings of the mixture-of-experts ops.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::te {

/// nvte_permute and nvte_unpermute, which are C++ functions, and nvte_fused_topk_with_score_function_forward. Rows are
/// moved 16 bytes at a time. nvte_permute makes the map of rows itself from the copies sorted by place, which are
/// derived from the op's map before the launch. Up to 2.12 the router computes in the tensor's format, since 2.13 in
/// FP32.
/// Source: TransformerEngine common/permutation/permutation.cu, common/fused_router.
[[nodiscard]] const Binding& moe_permute();
[[nodiscard]] const Binding& moe_unpermute();
[[nodiscard]] const Binding& router_topk();

}  // namespace numcheck::kernels::te
