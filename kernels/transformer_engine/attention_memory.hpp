// Device memory that fused attention wants besides the op's ports.
#pragma once

#include <cstddef>

#include "kernels/transformer_engine/launch.hpp"
#include "op/attention_params.hpp"

namespace numcheck::kernels::transformer_engine {

/// Parts of the memory that follows the scratch, as offsets in bytes.
struct AttentionMemory {
  explicit AttentionMemory(const op::AttentionParams& p);

  /// Writes all parts, from the lengths of the sequences if the case has them.
  void fill(const Operands& operands, const op::AttentionParams& p) const;

  std::size_t rng_state = 0;  ///< seed and offset of the dropout mask: 2 int64
  std::size_t cu_seqlens_q;   ///< first query of each sequence if they were packed, and their sum: batches + 1 int32
  std::size_t cu_seqlens_kv;
  std::size_t cu_seqlens_q_padded;  ///< layout thd: first token of each sequence, and their number
  std::size_t cu_seqlens_kv_padded;
  std::size_t softmax_offset;   ///< 0 for each head (FP32), which is the offset of off_by_one
  std::size_t dsoftmax_offset;  ///< gradient of an offset that is not a parameter
  std::size_t bytes;
};

}  // namespace numcheck::kernels::transformer_engine
