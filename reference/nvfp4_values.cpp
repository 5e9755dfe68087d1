#include "reference/nvfp4_values.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/codec.hpp"
#include "op/nvfp4.hpp"
#include "reference/exact_output.hpp"
#include "reference/nvfp4_layout.hpp"

namespace numcheck::reference {

core::Buffer<double> nvfp4_numbers(std::span<const double> bytes) {
  constexpr unsigned kCodeBits = 4, kCode = 0xF;
  core::Buffer<double> numbers(2 * bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned>(bytes[i]);
    numbers[2 * i] = core::decode(byte & kCode, core::Dtype::fp4_e2m1);
    numbers[2 * i + 1] = core::decode(byte >> kCodeBits, core::Dtype::fp4_e2m1);
  }
  return numbers;
}

Nvfp4Delivered::Nvfp4Delivered(const op::FindingRequest& request, const op::QuantizeParams& p,
                               const op::BlockLayout& layout)
    : request_(request) {
  const double amax = op::operand_named(request.inputs, amax_port(p, layout)).data[0];
  for (const op::Delivered& output : request.outputs) {
    op::Delivered taken = output;
    if (output.port == layout.codes) {
      numbers_.push_back(nvfp4_numbers(output.value));
      taken.dtype = core::Dtype::fp4_e2m1;
    } else if (output.port == layout.scales) {
      core::Buffer<double> scales(output.value.size());
      for (std::size_t i = 0; i < scales.size(); ++i) {
        scales[i] = output.value[i] * amax / static_cast<double>(op::kNvfp4Largest);
      }
      numbers_.push_back(std::move(scales));
    } else {
      continue;
    }
    taken.value = numbers_.back().span();
    outputs_.push_back(taken);
  }
  request_.outputs = outputs_;
  if (p.hadamard && layout.codes_transposed && !outputs_.empty()) {
    const Nvfp4Layout columns(p, request.inputs, layout);
    numbers_.push_back(
        transposed("x", columns.matrix().data, static_cast<std::size_t>(p.cols), static_cast<std::size_t>(p.rows))
            .value);
    inputs_.assign(request.inputs.begin(), request.inputs.end());
    std::ranges::find(inputs_, "x", &op::Operand::port)->data = numbers_.back().data();
    request_.inputs = inputs_;
  }
}

}  // namespace numcheck::reference
