#include "op/multi_tensor_scale.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fp32_op.hpp"
#include "kernels/sim/scale_from_amax.hpp"

namespace numcheck::kernels::sim {
namespace {

using P = op::MultiTensorScaleParams;

constexpr std::int64_t kChunks = 320;  // that one launch of TransformerEngine's takes

P params_of(const Call& call) {
  return op::from_params<P>(call.c->params);
}

std::int64_t chunks_of(const P& p) {
  return (p.elements + p.chunk - 1) / p.chunk;
}

std::string needs_scales(const Call& call) {
  return op::port_named(call.ports, "amaxes").elements() == 0 ? "there are no amaxes" : "";
}

std::string needs_epsilon(const Call& call) {
  return params_of(call).epsilon == 0 ? "epsilon is 0" : needs_scales(call);
}

std::string needs_power_of_two(const Call& call) {
  return params_of(call).power_of_two ? needs_scales(call) : "scales are not rounded to powers of two";
}

std::string needs_quotient(const Call& call) {
  return params_of(call).power_of_two ? "scales are rounded to powers of two" : needs_scales(call);
}

std::string needs_tensors(const Call& call) {
  return params_of(call).tensors < 2 ? "there are fewer than two tensors" : needs_scales(call);
}

std::string needs_chunks(const Call& call) {
  return chunks_of(params_of(call)) < 2 ? "a tensor is one chunk" : needs_scales(call);
}

std::string needs_launches(const Call& call) {
  const P p = params_of(call);
  return p.tensors * chunks_of(p) <= kChunks ? "one launch takes all chunks" : "";
}

constexpr std::array kFaults = {
    OpFault{{"other_format", "scales are for the largest number of the other FP8 format"}, &needs_scales},
    OpFault{{"epsilon_ignored", "scales follow from amaxes below epsilon"}, &needs_epsilon},
    OpFault{{"power_of_two_ignored", "scales are not rounded down to powers of two"}, &needs_power_of_two},
    OpFault{{"power_of_two_up", "scales are rounded up to powers of two"}, &needs_power_of_two},
    OpFault{{"scale_by_reciprocal", "a scale is the largest code times RN32(1 / amax), not their quotient"},
            &needs_quotient},
    OpFault{{"zero_amax_divides", "an amax of 0 gives the largest scale, not 1"}, &needs_scales},
    OpFault{{"infinite_amax_divides", "an infinite amax gives the scale 0, not 1"}, &needs_scales},
    OpFault{{"nan_amax_propagates", "an amax that is NaN makes the scale NaN, not 1"}, &needs_scales},
    OpFault{{"quotient_overflows", "a scale that overflows is infinite, not the largest FP32 number"}, &needs_quotient},
    OpFault{{"scale_inv_of_amax", "scale_inv is amax over the largest code, not 1 / scale"}, &needs_scales},
    OpFault{{"next_tensor", "each tensor has the scales of the next one"}, &needs_tensors},
    OpFault{{"last_chunk_missed", "the last chunk of every tensor is not written"}, &needs_chunks},
    OpFault{{"second_launch_missed", "what the first launch does not take is not written"}, &needs_launches},
};

/// scale_inv beside a scale.
float inverse_of(const P& p, float amax, float scale, const std::string& fault) {
  const core::Dtype format = core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3);
  return fault == "scale_inv_of_amax" ? amax / static_cast<float>(core::dtype_info(format).max_finite) : 1 / scale;
}

/// Whether the element of the tensor is written.
bool is_written(const P& p, std::int64_t tensor, std::int64_t element, const std::string& fault) {
  const std::int64_t chunk = element / p.chunk;
  return !(fault == "last_chunk_missed" && chunk == chunks_of(p) - 1) &&
         !(fault == "second_launch_missed" && tensor * chunks_of(p) + chunk >= kChunks);
}

void run(const P& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> amaxes = read_floats(ports, "amaxes");
  std::vector<float> scales = read_floats(ports, "scales"), inverses = read_floats(ports, "scale_invs");
  for (std::int64_t tensor = 0; tensor < p.tensors; ++tensor) {
    for (std::int64_t element = 0; element < p.elements; ++element) {
      if (!is_written(p, tensor, element, fault)) {
        continue;
      }
      const std::int64_t from = fault == "next_tensor" ? (tensor + 1) % p.tensors : tensor;
      const auto at = static_cast<std::size_t>(tensor * p.elements + element);
      const float amax = amaxes[static_cast<std::size_t>(from * p.elements + element)];
      scales[at] = scale_from_amax({p.format, static_cast<float>(p.epsilon), p.power_of_two}, amax, fault);
      inverses[at] = inverse_of(p, amax, scales[at], fault);
    }
  }
  write_floats(ports, "scales", scales, fault);
  write_floats(ports, "scale_invs", inverses, fault);
}

}  // namespace

const Binding& multi_tensor_scale() {
  return fp32_op<P, kFaults, &run>("multi_tensor_scale");
}

}  // namespace numcheck::kernels::sim
