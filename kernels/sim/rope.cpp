#include "op/rope.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fp32_op.hpp"

namespace numcheck::kernels::sim {
namespace {

std::string needs_tokens(const Call& call) {
  return op::from_params<op::RopeParams>(call.c->params).seq < 2 ? "there is only one token" : "";
}

std::string needs_start(const Call& call) {
  return op::from_params<op::RopeParams>(call.c->params).start == 0 ? "sequences start at row 0" : "";
}

std::string needs_rest(const Call& call) {
  const auto p = op::from_params<op::RopeParams>(call.c->params);
  return p.rotated() == p.dim ? "every channel is rotated" : "";
}

std::string needs_pairs(const Call& call) {
  return op::from_params<op::RopeParams>(call.c->params).rotated() < 4 ? "there is only one pair" : "";
}

constexpr std::array kFaults = {
    OpFault{{"wrong_pairs", "channels are paired across halves instead of with neighbours, or the reverse"},
            &needs_pairs},
    OpFault{{"opposite_sign", "the rotation goes the other way"}},
    OpFault{{"next_position", "every token uses the angles of the one before"}, &needs_tokens},
    OpFault{{"start_ignored", "sequences start at row 0 of the angles"}, &needs_start},
    OpFault{{"bf16_angles", "angles are rounded to BF16"}, &needs_tokens},
    OpFault{{"tf32_angles", "angles come from a product with operands rounded to TF32"}, &needs_tokens},
    OpFault{{"rest_not_copied", "channels that are not rotated become zero"}, &needs_rest},
};

struct Task {
  const op::RopeParams& p;
  bool backward;
  const std::string& fault;
  bool interleaved;

  [[nodiscard]] float angle(const std::vector<float>& freqs, std::int64_t token, std::int64_t i) const {
    std::int64_t row = p.start + token;
    if (fault == "next_position") {
      row = std::max<std::int64_t>(row - 1, 0);
    } else if (fault == "start_ignored") {
      row = token;
    }
    const float theta = freqs[static_cast<std::size_t>(row * p.rotated() + i)];
    if (fault == "bf16_angles") {
      return static_cast<float>(core::round_to(theta, core::Dtype::bf16));
    }
    return fault == "tf32_angles" ? static_cast<float>(core::round_to(theta, core::Dtype::tf32)) : theta;
  }

  void row(const float* x, const std::vector<float>& freqs, std::int64_t token, float* y) const {
    const std::int64_t rotated = p.rotated();
    const std::int64_t half = rotated / 2;
    for (std::int64_t i = 0; i < p.dim; ++i) {
      if (i >= rotated) {
        y[i] = fault == "rest_not_copied" ? 0 : x[i];
        continue;
      }
      const bool first = interleaved ? i % 2 == 0 : i < half;
      const std::int64_t other = interleaved ? (first ? i + 1 : i - 1) : (first ? i + half : i - half);
      const float sine = std::sin(angle(freqs, token, backward ? other : i));
      const bool minus = (first != backward) != (fault == "opposite_sign");
      y[i] = x[i] * std::cos(angle(freqs, token, i)) + (minus ? -x[other] : x[other]) * sine;
    }
  }
};

void run(const op::RopeParams& p, std::span<const PortMemory> ports, const std::string& fault, bool backward) {
  const std::vector<float> x = read_floats(ports, backward ? "dy" : "x");
  const std::vector<float> freqs = read_floats(ports, "freqs");
  std::vector<float> y(x.size());
  const Task task{p, backward, fault, p.interleaved != (fault == "wrong_pairs")};
  core::parallel_for(static_cast<std::size_t>(p.seq * p.batch), [&](std::size_t token) {
    const auto at = static_cast<std::int64_t>(token);
    const std::int64_t position = p.layout == "sbhd" ? at / p.batch : at % p.seq;
    for (std::int64_t head = 0; head < p.heads; ++head) {
      const std::int64_t first = (at * p.heads + head) * p.dim;
      task.row(x.data() + first, freqs, position, y.data() + first);
    }
  });
  write_floats(ports, backward ? "dx" : "y", y, fault);
}

void run_forward(const op::RopeParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  run(p, ports, fault, false);
}

void run_backward(const op::RopeParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  run(p, ports, fault, true);
}

}  // namespace

const Binding& rope_fwd() {
  return fp32_op<op::RopeParams, kFaults, &run_forward>("rope_fwd");
}

const Binding& rope_bwd() {
  return fp32_op<op::RopeParams, kFaults, &run_backward>("rope_bwd");
}

}  // namespace numcheck::kernels::sim
