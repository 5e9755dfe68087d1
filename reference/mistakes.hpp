// Mistakes in formulas that kernels are known to make, per op: what op::Reference::mistakes returns.
#pragma once

#include <vector>

#include "op/mode.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

[[nodiscard]] std::vector<op::Mistake> layernorm_fwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> layernorm_bwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> rmsnorm_fwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> rmsnorm_bwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> softmax_fwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> softmax_bwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> activation_fwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> activation_bwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> gemm_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> rope_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> moe_unpermute_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> router_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> attention_fwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> attention_bwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> attention_dropout_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> quantize_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> dequantize_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> transpose_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> moe_permute_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> dropout_fwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> dropout_bwd_mistakes(const op::Params& params, const op::Mode& mode);
[[nodiscard]] std::vector<op::Mistake> bias_grad_mistakes(const op::Params& params, const op::Mode& mode);

}  // namespace numcheck::reference
