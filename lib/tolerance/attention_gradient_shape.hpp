// Where the rows of attention's outputs are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "op/attention_layout.hpp"

namespace numcheck::tolerance {

/// Of output dq, dk, dv or dbias, or of o: heads of a sequence, positions of a head, channels of a position. Facts are numbered
/// ((batch heads) + head) length + position; dbias has no batches.
struct GradientShape {
  const op::AttentionParams& p;
  bool bias;
  op::Side side;
  std::int64_t batches, heads, length, channels;

  GradientShape(const op::AttentionParams& params, std::string_view port)
      : p(params),
        bias(port == "dbias"),
        side(port == "dk" || port == "dv" ? op::Side::keys : op::Side::queries),
        batches(bias ? 1 : p.batches),
        heads(op::heads_of(p, side)),
        length(op::longest(p, side)),
        channels(bias                          ? p.sk
                 : port == "dv" || port == "o" ? p.value_channels()
                                               : p.d) {}

  [[nodiscard]] std::size_t rows() const { return static_cast<std::size_t>(batches * heads * length); }
  /// False for positions that the tensor does not have: those beyond a ragged sequence.
  [[nodiscard]] bool has(std::size_t row) const {
    return bias || position_of(row) < op::positions(p, side, head_of(row) / heads);
  }
  /// Its first element. Precondition: has(row).
  [[nodiscard]] std::size_t first_of(std::size_t row) const {
    const std::int64_t head = head_of(row);
    const op::HeadPlace place = bias ? op::HeadPlace{head * length * channels, channels}
                                     : op::head_place(p, side, head / heads, head % heads, channels);
    return static_cast<std::size_t>(place.first + position_of(row) * place.stride);
  }

 private:
  [[nodiscard]] std::int64_t position_of(std::size_t row) const { return static_cast<std::int64_t>(row) % length; }
  [[nodiscard]] std::int64_t head_of(std::size_t row) const { return static_cast<std::int64_t>(row) / length; }
};

}  // namespace numcheck::tolerance
