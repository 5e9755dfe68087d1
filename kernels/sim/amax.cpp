#include "op/amax.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/block_quantize.hpp"
#include "kernels/sim/fp32_op.hpp"
#include "kernels/sim/scale_from_amax.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::size_t kVectorBytes = 32;  // of a thread's load in TransformerEngine's kernel

op::AmaxParams params_of(const Call& call) {
  return op::from_params<op::AmaxParams>(call.c->params);
}

std::size_t vector_of(const op::Port& x) {
  return kVectorBytes / core::dtype_info(x.dtype).storage_bytes;
}

std::string needs_elements(const Call& call) {
  return op::port_named(call.ports, "x").elements() == 0 ? "x is empty" : "";
}

std::string needs_tail(const Call& call) {
  const op::Port& x = op::port_named(call.ports, "x");
  return static_cast<std::size_t>(x.elements()) % vector_of(x) == 0 ? "vectors of 32 bytes hold all elements" : "";
}

std::string needs_scale(const Call& call) {
  return params_of(call).has_scale() ? "" : "the case has no scale";
}

std::string needs_epsilon(const Call& call) {
  const op::AmaxParams p = params_of(call);
  return !p.has_scale() ? needs_scale(call) : p.epsilon == 0 ? "epsilon is 0" : "";
}

std::string needs_power_of_two(const Call& call) {
  const op::AmaxParams p = params_of(call);
  return !p.has_scale() ? needs_scale(call) : p.power_of_two ? "" : "the scale is not rounded to a power of two";
}

std::string needs_quotient(const Call& call) {
  const op::AmaxParams p = params_of(call);
  return !p.has_scale() ? needs_scale(call) : p.power_of_two ? "the scale is rounded to a power of two" : "";
}

constexpr std::array kFaults = {
    OpFault{{"wrong_amax", "amax is the largest x, not the largest |x|"}, &needs_elements},
    OpFault{{"nan_amax", "an amax of elements with NaN is NaN"}, &needs_elements},
    OpFault{{"infinity_skipped", "infinite elements do not count in an amax"}, &needs_elements},
    OpFault{{"last_row_missed", "the last row does not count in an amax"}, &needs_elements},
    OpFault{{"last_vector_missed", "elements that do not fill a vector of 32 bytes do not count in an amax"},
            &needs_tail},
    OpFault{{"amax_not_reset", "amax is raised from that of an earlier, larger tensor"}},
    OpFault{{"subnormal_amax_flushed", "a subnormal amax becomes zero"}, &needs_elements},
    OpFault{{"fp16_detour", "x is converted to FP16 first"}, &needs_wide_input},
    OpFault{{"epsilon_ignored", "scales follow from amaxes below epsilon"}, &needs_epsilon},
    OpFault{{"power_of_two_ignored", "scales are not rounded down to powers of two"}, &needs_power_of_two},
    OpFault{{"power_of_two_up", "scales are rounded up to powers of two"}, &needs_power_of_two},
    OpFault{{"other_format", "scales are for the largest number of the other FP8 format"}, &needs_scale},
    OpFault{{"quotient_overflows", "a scale that overflows is infinite, not the largest FP32 number"}, &needs_quotient},
    OpFault{{"zero_amax_divides", "an amax of 0 gives the largest scale, not 1"}, &needs_scale},
    OpFault{{"scale_by_reciprocal", "the scale is the largest code times RN32(1 / amax), not their quotient"},
            &needs_quotient},
    OpFault{{"scale_inv_for_scale", "the scale is its own reciprocal"}, &needs_scale},
};

/// What the kernel reads, without what a fault leaves out.
std::vector<float> counted(std::span<const PortMemory> ports, const std::string& fault) {
  std::vector<float> x = faulty_input(ports, fault);
  const op::Port& port = *port_memory(ports, "x").port;
  if (fault == "last_row_missed") {
    x.resize(x.size() - static_cast<std::size_t>(x.empty() ? 0 : port.cols));
  } else if (fault == "last_vector_missed") {
    x.resize(x.size() / vector_of(port) * vector_of(port));
  }
  return x;
}

float amax_of(const std::vector<float>& x, const std::string& fault) {
  constexpr float kEarlier = 2;  // how much larger that tensor was
  float amax = 0;
  bool has_nan = false;
  for (const float value : x) {
    const bool counts = fault != "infinity_skipped" || !std::isinf(value);
    amax = std::fmax(amax, !counts ? 0 : fault == "wrong_amax" ? value : std::fabs(value));
    has_nan = has_nan || std::isnan(value);
  }
  if (fault == "nan_amax" && has_nan) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (fault == "subnormal_amax_flushed" && amax < std::numeric_limits<float>::min()) {
    return 0;
  }
  return fault == "amax_not_reset" ? (amax == 0 ? 1 : kEarlier * amax) : amax;
}

float scale_of(const op::AmaxParams& p, float amax, const std::string& fault) {
  // An amax that is NaN is a fault itself (nan_amax), and its scale 1.
  const float scale = scale_from_amax({p.format, static_cast<float>(p.epsilon), p.power_of_two}, amax, fault);
  return fault == "scale_inv_for_scale" ? 1 / scale : scale;
}

void run(const op::AmaxParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const float amax = amax_of(counted(ports, fault), fault);
  write_floats(ports, "amax", std::array{amax}, fault);
  if (p.has_scale()) {
    write_floats(ports, "scale", std::array{scale_of(p, amax, fault)}, fault);
  }
}

}  // namespace

const Binding& amax() {
  return fp32_op<op::AmaxParams, kFaults, &run>("amax");
}

}  // namespace numcheck::kernels::sim
