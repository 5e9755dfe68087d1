#include "op/attention_layout.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/rng.hpp"

namespace numcheck::op {
namespace {

constexpr std::int64_t kTurns = 8;  // sequences whose lengths repeat

struct Lengths {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
};

/// Lengths of a sequence by its turn.
Lengths drawn_lengths(const AttentionParams& p, std::int64_t turn) {
  constexpr std::int64_t kEmpty = 2, kOnlyQueries = 4, kOnlyKeys = 6;
  if (turn == 0 && p.batches > 1) {
    return {p.sq, p.sk};
  }
  const auto word = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  const core::PhiloxCounter random =
      core::philox4x32({word(turn), word(p.sq), word(p.sk), word(p.d)}, {word(p.batches), word(p.heads)});
  Lengths lengths{1 + static_cast<std::int64_t>(random[0]) % p.sq, 1 + static_cast<std::int64_t>(random[1]) % p.sk};
  if (p.packs_queries()) {
    lengths.keys = lengths.queries;
  }
  if (turn == kEmpty || (turn == kOnlyKeys && !p.packs_queries())) {
    lengths.queries = 0;
  }
  if (turn == kEmpty || (turn == kOnlyQueries && !p.packs_queries())) {
    lengths.keys = 0;
  }
  return lengths;
}

std::int64_t aligned(std::int64_t length, std::int64_t multiple) {
  return (length + multiple - 1) / multiple * multiple;
}

/// Tensors that lie between each other: as many as q's (or k's) buffer holds.
std::int64_t packed_tensors(const AttentionParams& p, Side side) {
  return p.packs_queries() ? 3 : p.packing != "none" && side == Side::keys ? 2 : 1;
}

/// The number of q, k or v (dq, dk or dv) in the buffer that it shares; o and do share none.
std::int64_t packed_number(const AttentionParams& p, Side side, std::string_view name) {
  const bool values = name == "v" || name == "dv";
  return p.packs_queries() ? (side == Side::queries ? 0 : values ? 2 : 1) : values ? 1 : 0;
}

/// o and do have o's layout, which is never packed.
bool is_packed(const AttentionParams& p, Side side, std::string_view name) {
  return packed_tensors(p, side) > 1 && name != "o" && name != "do";
}

/// True if heads of packed tensors alternate: h3d, h2d.
bool packs_by_head(const AttentionParams& p) {
  return p.packing.ends_with("_h3d") || p.packing.ends_with("_h2d");
}

void add_range(std::vector<OutputValues::Range>& ranges, std::int64_t begin, std::int64_t end) {
  if (begin >= end) {
    return;
  }
  if (!ranges.empty() && ranges.back().end == begin) {
    ranges.back().end = end;
  } else {
    ranges.push_back({begin, end});
  }
}

/// Tokens of a thd tensor between and behind the sequences, as ranges of `width` elements each.
std::vector<OutputValues::Range> unused_tokens(const AttentionParams& p, Side side, std::int64_t width,
                                               std::span<const std::int64_t> lengths) {
  std::vector<OutputValues::Range> ranges;
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    const std::int64_t end = first_token(p, side, batch) + lengths[static_cast<std::size_t>(batch)];
    add_range(ranges, end * width, first_token(p, side, batch + 1) * width);
  }
  return ranges;
}

}  // namespace

std::int64_t heads_of(const AttentionParams& p, Side side) noexcept {
  return side == Side::queries ? p.heads : p.key_heads();
}

std::int64_t longest(const AttentionParams& p, Side side) noexcept {
  return side == Side::queries ? p.sq : p.sk;
}

std::int64_t sequence_length(const AttentionParams& p, Side side, std::int64_t batch) noexcept {
  if (!p.has_lengths()) {
    return longest(p, side);
  }
  const Lengths lengths = drawn_lengths(p, batch % kTurns);
  return side == Side::queries ? lengths.queries : lengths.keys;
}

std::vector<std::int64_t> sequence_lengths(const AttentionParams& p, Side side) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(p.batches));
  for (std::size_t batch = 0; batch < lengths.size(); ++batch) {
    lengths[batch] = sequence_length(p, side, static_cast<std::int64_t>(batch));
  }
  return lengths;
}

std::int64_t tokens(const AttentionParams& p, Side side) noexcept {
  return p.is_ragged() ? first_token(p, side, p.batches) : p.batches * longest(p, side);
}

std::int64_t positions(const AttentionParams& p, Side side, std::int64_t batch) noexcept {
  return p.is_ragged() ? sequence_length(p, side, batch) : longest(p, side);
}

std::int64_t first_token(const AttentionParams& p, Side side, std::int64_t batch) noexcept {
  const auto tokens_of = [&](std::int64_t sequences) {
    std::int64_t sum = 0;
    for (std::int64_t turn = 0; turn < sequences; ++turn) {
      sum += aligned(sequence_length(p, side, turn), p.align);
    }
    return sum;
  };
  const std::int64_t whole = batch / kTurns;
  return (whole == 0 ? 0 : whole * tokens_of(kTurns)) + tokens_of(batch % kTurns);
}

HeadPlace head_place(const AttentionParams& p, Side side, std::int64_t batch, std::int64_t head,
                     std::int64_t channels) noexcept {
  const std::int64_t heads = heads_of(p, side), length = longest(p, side);
  if (p.layout == "bhsd") {
    return {(batch * heads + head) * length * channels, channels};
  }
  if (p.layout == "sbhd") {
    return {(batch * heads + head) * channels, p.batches * heads * channels};
  }
  const std::int64_t first = p.is_ragged() ? first_token(p, side, batch) : batch * length;
  return {(first * heads + head) * channels, heads * channels};
}

HeadPlace statistic_place(const AttentionParams& p, std::int64_t batch, std::int64_t head) noexcept {
  return p.is_ragged() ? HeadPlace{first_token(p, Side::queries, batch) * p.heads + head, p.heads}
                       : HeadPlace{(batch * p.heads + head) * p.sq, 1};
}

std::size_t statistic_element(const AttentionParams& p, std::size_t query) noexcept {
  const std::int64_t head = static_cast<std::int64_t>(query) / p.sq;
  const HeadPlace place = statistic_place(p, head / p.heads, head % p.heads);
  return static_cast<std::size_t>(place.first + static_cast<std::int64_t>(query) % p.sq * place.stride);
}

std::vector<OutputValues::Range> unused_elements(const AttentionParams& p, Side side, std::int64_t channels,
                                                 std::span<const std::int64_t> lengths) {
  const std::int64_t heads = heads_of(p, side);
  if (p.is_ragged()) {
    return unused_tokens(p, side, heads * channels, lengths);
  }
  std::vector<OutputValues::Range> ranges;
  for (std::int64_t task = 0; task < p.batches * heads; ++task) {
    const HeadPlace place = head_place(p, side, task / heads, task % heads, channels);
    for (std::int64_t i = lengths[static_cast<std::size_t>(task / heads)]; i < longest(p, side); ++i) {
      const std::int64_t first = place.first + i * place.stride;
      add_range(ranges, first, first + channels);
    }
  }
  return ranges;
}

std::vector<OutputValues::Range> unused_statistics(const AttentionParams& p, std::span<const std::int64_t> lengths) {
  if (p.is_ragged()) {
    return unused_tokens(p, Side::queries, p.heads, lengths);
  }
  std::vector<OutputValues::Range> ranges;
  for (std::int64_t task = 0; task < p.batches * p.heads; ++task) {
    add_range(ranges, task * p.sq + lengths[static_cast<std::size_t>(task / p.heads)], (task + 1) * p.sq);
  }
  return ranges;
}

Port attention_port(std::string_view name, Role role, core::Dtype dtype, const AttentionParams& p, Side side,
                    std::int64_t channels, std::string_view doc) {
  const std::int64_t heads = heads_of(p, side), length = longest(p, side);
  const bool packed = is_packed(p, side, name);
  Port port;
  if (p.layout == "bhsd") {
    port = dense_port(name, role, dtype, length, channels, doc);
    port.batch = p.batches * heads;
  } else if (p.layout == "sbhd" && !packed) {
    port = dense_port(name, role, dtype, length, p.batches * heads * channels, doc);
  } else {
    const bool whole_sequences = p.layout == "bshd";
    const std::int64_t rows = whole_sequences ? length : tokens(p, side);
    const bool by_head = packed && packs_by_head(p);
    port = by_head ? dense_port(name, role, dtype, rows * heads, channels, doc)
                   : dense_port(name, role, dtype, rows, heads * channels, doc);
    port.batch = whole_sequences ? p.batches : 1;
    if (packed) {
      port.offset_bytes = packed_number(p, side, name) * port.cols * core::dtype_info(dtype).storage_bytes;
      port.ld = packed_tensors(p, side) * port.cols;
    }
  }
  port.batch_stride = port.rows * port.ld;
  port.heads = port.cols / std::max<std::int64_t>(1, channels);
  return port;
}

HeadStrides memory_strides(const AttentionParams& p, Side side, std::string_view name, std::int64_t channels) {
  const Port port = attention_port(name, Role::input, core::Dtype::fp32, p, side, channels, "");
  const std::int64_t heads = heads_of(p, side);
  if (p.layout == "bhsd") {
    return {0, heads * port.batch_stride, port.batch_stride, port.ld};
  }
  const bool packed = is_packed(p, side, name);
  const bool by_head = packed && packs_by_head(p);
  const bool token_rows = packed || p.layout != "sbhd";  // a row of the port is a token
  const std::int64_t token = by_head ? heads * port.ld : token_rows ? port.ld : heads * channels;
  const std::int64_t head = by_head ? port.ld : channels;
  const std::int64_t first = port.offset_bytes / core::dtype_info(port.dtype).storage_bytes;
  if (p.layout == "sbhd") {
    return {first, token, head, p.batches * token};
  }
  return {first, p.is_ragged() ? 0 : port.batch_stride, head, token};
}

Port statistic_port(std::string_view name, Role role, const AttentionParams& p, std::string_view doc) {
  return p.is_ragged() ? dense_port(name, role, core::Dtype::fp32, tokens(p, Side::queries), p.heads, doc)
                       : dense_port(name, role, core::Dtype::fp32, p.batches * p.heads, p.sq, doc);
}

std::vector<std::string> check_attention_layout(std::string_view op, const AttentionParams& p) {
  std::vector<std::string> mistakes;
  if (p.is_ragged() && !p.has_lengths()) {
    mistakes.push_back(
        fmt::format("{}: layout thd has sequences of different lengths; set mask to padding, padding_causal or "
                    "padding_causal_bottom_right, not {}",
                    op, p.mask));
  }
  if (!p.is_ragged() && p.align != 1) {
    mistakes.push_back(fmt::format("{}: align is for layout thd, not {}", op, p.layout));
  }
  if (p.packing == "none") {
    return mistakes;
  }
  if (p.layout == "bhsd") {
    mistakes.push_back(fmt::format("{}: packing needs layout bshd, sbhd or thd, not bhsd", op));
  }
  if (p.d != p.value_channels()) {
    mistakes.push_back(fmt::format("{}: packed tensors have the same channels; d is {}, dv {}", op, p.d, p.dv));
  }
  if (p.packs_queries() && (p.heads != p.key_heads() || p.sq != p.sk)) {
    mistakes.push_back(fmt::format(
        "{}: q, k and v in one tensor have the same heads and lengths; heads are {} and {}, sq and sk {} and "
        "{}",
        op, p.heads, p.key_heads(), p.sq, p.sk));
  }
  return mistakes;
}

}  // namespace numcheck::op
