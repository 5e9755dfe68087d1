#include "kernels/transformer_engine/attention_memory.hpp"

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "op/attention_layout.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

/// Sums of the lengths before each sequence; without the port, every sequence is whole.
std::vector<std::int32_t> cumulative_lengths(const Operands& o, const op::AttentionParams& p, std::string_view port,
                                             std::int64_t longest) {
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(p.batches), static_cast<std::int32_t>(longest));
  if (p.has_lengths()) {
    o.context().device->memory().download(std::as_writable_bytes(std::span(lengths)), o.data(port));
  }
  std::vector<std::int32_t> sums = {0};
  for (const std::int32_t length : lengths) {
    sums.push_back(sums.back() + length);
  }
  return sums;
}

std::vector<std::int32_t> first_tokens(const op::AttentionParams& p, op::Side side) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t batch = 0; batch <= p.batches; ++batch) {
    tokens.push_back(static_cast<std::int32_t>(op::first_token(p, side, batch)));
  }
  return tokens;
}

}  // namespace

AttentionMemory::AttentionMemory(const op::AttentionParams& p)
    : cu_seqlens_q(aligned(2 * sizeof(std::int64_t))),
      cu_seqlens_kv(cu_seqlens_q + aligned(static_cast<std::size_t>(p.batches + 1) * sizeof(std::int32_t))),
      cu_seqlens_q_padded(cu_seqlens_kv + aligned(static_cast<std::size_t>(p.batches + 1) * sizeof(std::int32_t))),
      cu_seqlens_kv_padded(cu_seqlens_q_padded +
                           aligned(static_cast<std::size_t>(p.batches + 1) * sizeof(std::int32_t))),
      softmax_offset(cu_seqlens_kv_padded + aligned(static_cast<std::size_t>(p.batches + 1) * sizeof(std::int32_t))),
      dsoftmax_offset(softmax_offset + aligned(static_cast<std::size_t>(p.heads) * sizeof(float))),
      bytes(dsoftmax_offset + aligned(static_cast<std::size_t>(p.heads) * sizeof(float))) {}

void AttentionMemory::fill(const Operands& operands, const op::AttentionParams& p) const {
  std::vector<std::byte> image(bytes);
  const auto put = [&image](std::size_t at, const std::vector<std::int32_t>& sums) {
    std::memcpy(image.data() + at, sums.data(), sums.size() * sizeof(std::int32_t));
  };
  std::memcpy(image.data() + rng_state, &p.rng_seed, sizeof p.rng_seed);  // the offset is 0
  put(cu_seqlens_q, cumulative_lengths(operands, p, "q_lengths", p.sq));
  put(cu_seqlens_kv, cumulative_lengths(operands, p, "kv_lengths", p.sk));
  if (p.is_ragged()) {
    put(cu_seqlens_q_padded, first_tokens(p, op::Side::queries));
    put(cu_seqlens_kv_padded, first_tokens(p, op::Side::keys));
  }
  operands.context().device->memory().upload(operands.extra(), image);
}

}  // namespace numcheck::kernels::transformer_engine
