#include "kernels/sim/attention_scales.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/codec.hpp"
#include "kernels/sim/attention.hpp"
#include "kernels/sim/tensor_io.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr float kStale = 2;  // the tensor from which the scale was made was half as large

/// 1 if the case has no such port.
float scalar(std::span<const PortMemory> ports, std::string_view name) {
  return find_port(ports, name) == nullptr ? 1.0F : read_floats(ports, name).front();
}

}  // namespace

float AttentionScales::Inner::operand(float value) const {
  if (format == core::Dtype::fp32) {
    return value;
  }
  const auto largest = static_cast<float>(core::dtype_info(format).max_finite);
  const float scaled = value * scale;
  const float within = core::is_fp8(format) && !std::isnan(scaled) ? std::clamp(scaled, -largest, largest) : scaled;
  return static_cast<float>(core::round_to(static_cast<double>(within), format));
}

AttentionScales::AttentionScales(const AttentionKernel& kernel, std::span<const PortMemory> ports)
    : q(scalar(ports, "q_scale_inv")),
      k(scalar(ports, "k_scale_inv")),
      v(kernel.has("value_descale_of_keys") ? k : scalar(ports, "v_scale_inv")),
      o(scalar(ports, "o_scale_inv")),
      d_o(scalar(ports, "do_scale_inv")),
      weights{scalar(ports, "s_scale"), scalar(ports, "s_scale_inv"), kernel.operands},
      score_gradients{scalar(ports, "dp_scale"), scalar(ports, "dp_scale_inv"),
                      core::is_fp8(kernel.operands) ? kernel.gradients : kernel.operands} {
  if (kernel.has("stale_weight_scale")) {
    weights.scale *= kStale;
  }
  if (kernel.has("stale_gradient_scale")) {
    score_gradients.scale *= kStale;
  }
}

}  // namespace numcheck::kernels::sim
