#include "reference/nvfp4_layout.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "reference/exact_output.hpp"
#include "reference/hadamard.hpp"

namespace numcheck::reference {

std::string_view amax_port(const op::QuantizeParams& p, const op::BlockLayout& layout) {
  return p.hadamard && layout.codes_transposed ? "global_amax_t" : "global_amax";
}

Nvfp4Layout::Nvfp4Layout(const op::QuantizeParams& p, std::span<const op::Operand> inputs,
                         const op::BlockLayout& layout, bool has_signs)
    : matrix_{op::operand_named(inputs, "x").data, p.rows, p.cols, p.block_shape == "16x16"},
      rule_(op::operand_named(inputs, amax_port(p, layout)).data[0]) {
  if (!layout.codes_transposed) {
    return;
  }
  own_ = transposed("x", matrix_.data, static_cast<std::size_t>(p.rows), static_cast<std::size_t>(p.cols)).value;
  if (p.hadamard) {
    Transformed transformed = hadamard_transformed(own_.span(), has_signs);
    own_ = std::move(transformed.values);
    if (std::ranges::find(transformed.uncertain, 1) != transformed.uncertain.end()) {
      uncertain_ = std::move(transformed.uncertain);
    }
  }
  matrix_.data = own_.data();
  std::swap(matrix_.lines, matrix_.length);
}

}  // namespace numcheck::reference
