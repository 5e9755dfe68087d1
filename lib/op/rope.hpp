// Rotary position embedding, forward and backward.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `rope_fwd` and `rope_bwd`. With theta = freqs[start + s, i] (FP32) for element i of head h of token s:
///
///   forward    y_i = x_i cos(theta_i) + r_i sin(theta_i)
///              halves:       r_i = -x_(i+d/2) for i < d/2, x_(i-d/2) beyond
///              interleaved:  r_2i = -x_(2i+1), r_(2i+1) = x_2i
///   backward   the transpose of that matrix: the sine at the partner's index, with the opposite sign
///
/// on the first d = rotary channels of each head; the others are copied. FP32 arithmetic, one rounding to x's format.
/// Ports: x (dy in backward) [tokens * heads, dim] with tokens in the order of `layout`; freqs [start + seq, rotary],
/// derived: (position + row) base^(-2 j / rotary) with j the index of the pair; start_positions [batch, 1] (int32,
/// derived, only with start > 0); y (dx) as x.
/// Source: TransformerEngine fused_rope.h, common/fused_rope/fused_rope.cu.
struct RopeParams {
  std::int64_t seq = 0;
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t dim = 0;
  std::int64_t rotary = 0;  ///< 0: dim
  bool interleaved = false;
  std::string layout = "sbhd";  ///< sbhd | bshd
  std::int64_t start = 0;
  std::int64_t position = 0;
  double base = 10000;

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 24;
    v.integer("seq", "s", seq, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "tokens of a sequence"});
    v.integer("batch", "b", batch, {.minimum = 1, .maximum = 65535, .doc = "sequences"});
    v.integer("heads", "h", heads, {.minimum = 1, .maximum = 65535, .doc = "heads of a token"});
    v.integer("dim", "d", dim, {.minimum = 2, .maximum = 65536, .required = true, .doc = "channels of a head"});
    v.integer("rotary", "rot", rotary,
              {.minimum = 0, .maximum = 65536, .doc = "channels that are rotated, an even number; 0: all of them"});
    v.boolean("interleaved", "il", interleaved, "pairs are neighbours (2i, 2i+1), not halves (i, i + rotary/2)");
    v.choice("layout", "lay", layout, {"sbhd", "bshd"}, "order of tokens and sequences in memory");
    v.integer("start", "st", start,
              {.minimum = 0, .maximum = 1 << 20, .doc = "row of freqs that the first token of every sequence uses"});
    v.integer("position", "pos", position, {.minimum = 0, .maximum = 1e9, .doc = "position of the first row of freqs"});
    v.number("base", "base", base, {.minimum = 1, .maximum = 1e12, .doc = "base of the frequencies"});
  }

  [[nodiscard]] std::int64_t rotated() const noexcept { return rotary == 0 ? dim : rotary; }
};

[[nodiscard]] const Op& rope_fwd();
[[nodiscard]] const Op& rope_bwd();

}  // namespace numcheck::op
