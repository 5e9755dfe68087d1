// Where attention's tensors have their sequences, heads and channels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "op/attention_params.hpp"
#include "op/op.hpp"
#include "op/reference.hpp"

namespace numcheck::op {

/// Whose positions a tensor has: those of queries (q, o, do, dq), or of keys (k, v, dk, dv).
enum class Side : std::uint8_t { queries, keys };

[[nodiscard]] std::int64_t heads_of(const AttentionParams& p, Side side) noexcept;
/// Positions of the longest sequence: sq or sk.
[[nodiscard]] std::int64_t longest(const AttentionParams& p, Side side) noexcept;

/// Positions of a sequence that count. Without a padding mask all of them; otherwise eight sequences take turns: a whole
/// one (if there are several), one without queries and keys (the third), one with queries only (the fifth), one with keys
/// only (the seventh), and four of any length. Packed q, k and v have the same lengths.
[[nodiscard]] std::int64_t sequence_length(const AttentionParams& p, Side side, std::int64_t batch) noexcept;

[[nodiscard]] std::vector<std::int64_t> sequence_lengths(const AttentionParams& p, Side side);

/// Positions of a sequence that the tensor has: with layout thd those that count, otherwise those of the longest.
[[nodiscard]] std::int64_t positions(const AttentionParams& p, Side side, std::int64_t batch) noexcept;

/// Positions of all sequences in a tensor, those between them included.
[[nodiscard]] std::int64_t tokens(const AttentionParams& p, Side side) noexcept;

/// Layout thd: the token that a sequence starts with, a multiple of p.align; with batch = p.batches, the number of tokens.
[[nodiscard]] std::int64_t first_token(const AttentionParams& p, Side side, std::int64_t batch) noexcept;

/// Where the positions of one head of one sequence are among a tensor's elements: channel c of position i is element
/// first + i stride + c.
struct HeadPlace {
  std::int64_t first = 0;
  std::int64_t stride = 0;
};
[[nodiscard]] HeadPlace head_place(const AttentionParams& p, Side side, std::int64_t batch, std::int64_t head,
                                   std::int64_t channels) noexcept;

/// The same for lse and max_logit: element first + i stride is that of query i.
[[nodiscard]] HeadPlace statistic_place(const AttentionParams& p, std::int64_t batch, std::int64_t head) noexcept;

/// The same by the query's number: (batch * heads + head) * sq + i.
[[nodiscard]] std::size_t statistic_element(const AttentionParams& p, std::size_t query) noexcept;

/// Elements that belong to no position that counts, where sequences have these lengths: of a tensor with these channels,
/// or of lse and max_logit.
[[nodiscard]] std::vector<OutputValues::Range> unused_elements(const AttentionParams& p, Side side,
                                                               std::int64_t channels,
                                                               std::span<const std::int64_t> lengths);
[[nodiscard]] std::vector<OutputValues::Range> unused_statistics(const AttentionParams& p,
                                                                 std::span<const std::int64_t> lengths);

/// How the memory of port `name` is cut into heads: elements from one sequence (not with thd, where they start at
/// first_token times `position`), head and position to the next.
struct HeadStrides {
  std::int64_t first = 0;  ///< elements of the buffer before the tensor, if it is packed
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t position = 0;
};
[[nodiscard]] HeadStrides memory_strides(const AttentionParams& p, Side side, std::string_view name,
                                         std::int64_t channels);

/// A tensor of heads in the case's layout and packing. Packed tensors are those of one buffer with the others left out: q of
/// qkv_3hd has rows of heads x d elements with gaps of twice as many between them.
[[nodiscard]] Port attention_port(std::string_view name, Role role, core::Dtype dtype, const AttentionParams& p,
                                  Side side, std::int64_t channels, std::string_view doc);

/// One number per query (lse, max_logit): [batches * heads, sq], with layout thd [tokens, heads].
[[nodiscard]] Port statistic_port(std::string_view name, Role role, const AttentionParams& p, std::string_view doc);

/// What is wrong with layout, packing and alignment.
[[nodiscard]] std::vector<std::string> check_attention_layout(std::string_view op, const AttentionParams& p);

}  // namespace numcheck::op
