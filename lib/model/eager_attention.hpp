// What attention rounds if its two products are operations of their own, as frameworks compute it without a fused kernel.
#pragma once

#include "model/declared_rounding.hpp"
#include "op/attention_params.hpp"
#include "op/mode.hpp"

namespace numcheck::model {

/// Everything that is stored in between, to the 16 bits of the tensors; nothing in FP32. Sums over sequences and heads are FP32.
[[nodiscard]] AttentionRounding eager_rounding(const op::AttentionParams& p, const op::Mode& mode) noexcept;

}  // namespace numcheck::model
