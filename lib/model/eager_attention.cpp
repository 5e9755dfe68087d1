#include "model/eager_attention.hpp"

#include "core/dtype.hpp"

namespace numcheck::model {

AttentionRounding eager_rounding(const op::AttentionParams& p, const op::Mode& mode) noexcept {
  if (core::dtype_info(mode.first).storage_bytes > 2) {
    return {};
  }
  return {.scores = true,
          .weights = true,
          .dropped_weights = p.has_dropout(),
          .sink = p.softmax == "learnable",
          .score_gradients = true,
          .head_gradients = p.key_heads() < p.heads};
}

}  // namespace numcheck::model
