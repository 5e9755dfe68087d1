#include "op/dropout.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "core/parallel.hpp"
#include "core/rng.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fp32_op.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::size_t kGroup = 16;  // elements that share one Philox block, one random byte each

std::string needs_elements(const Call& call) {
  const auto p = op::from_params<op::DropoutParams>(call.c->params);
  return p.elements == 0 ? "there are no elements" : p.dropped_share() == 0 ? "nothing is dropped" : "";
}

constexpr std::size_t kPeriod = 300;  // groups

std::string needs_two_periods(const Call& call) {
  const std::string nothing = needs_elements(call);
  const auto p = op::from_params<op::DropoutParams>(call.c->params);
  return nothing.empty() && p.elements < static_cast<std::int64_t>(2 * kPeriod * kGroup)
             ? "the generator does not start again within so few elements"
             : nothing;
}

constexpr std::size_t kRepeated = 32;  // groups

std::string needs_two_ranges(const Call& call) {
  const std::string nothing = needs_elements(call);
  const auto p = op::from_params<op::DropoutParams>(call.c->params);
  return nothing.empty() && p.elements < static_cast<std::int64_t>(2 * kRepeated * kGroup)
             ? "there are no two times 512 elements"
             : nothing;
}

constexpr std::array kForwardFaults = {
    OpFault{{"scale_missing", "kept elements are not divided by 1 - p"}, &needs_elements},
    OpFault{{"scale_by_p", "kept elements are divided by p"}, &needs_elements},
    OpFault{{"nothing_dropped", "every element is kept"}, &needs_elements},
    OpFault{{"mask_inverted", "the mask says dropped where it means kept"}, &needs_elements},
    OpFault{{"constant_mask", "every group of 16 elements has the same mask"}, &needs_elements},
    OpFault{{"share_half", "half as many elements are dropped as requested"}, &needs_elements},
    OpFault{{"groups_restart", "the generator starts again after 300 groups of 16 elements"}, &needs_two_periods},
    OpFault{{"range_repeated", "the last whole 512 elements have the mask of the first 512"}, &needs_two_ranges},
};
constexpr std::array kBackwardFaults = {
    OpFault{{"scale_missing", "kept elements are not divided by 1 - p"}, &needs_elements},
    OpFault{{"scale_by_p", "kept elements are divided by p"}, &needs_elements},
    OpFault{{"mask_ignored", "every element is kept"}, &needs_elements},
    OpFault{{"mask_inverted", "kept and dropped are swapped"}, &needs_elements},
    OpFault{{"mask_shifted", "every element uses its neighbour's bit"}, &needs_elements},
};

float scale_of(const op::DropoutParams& p, const std::string& fault) {
  const auto probability = static_cast<float>(p.p);
  return fault == "scale_missing" ? 1.0F : fault == "scale_by_p" ? 1.0F / probability : 1.0F / (1.0F - probability);
}

/// One random byte per element of the group.
std::array<unsigned, kGroup> random_bytes(std::int64_t seed, std::size_t group) {
  const auto key = static_cast<std::uint64_t>(seed);
  const core::PhiloxCounter words =
      core::philox4x32({static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32), 0, 0},
                       {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
  std::array<unsigned, kGroup> bytes{};
  for (std::size_t i = 0; i < kGroup; ++i) {
    bytes[i] = words[i / 4] >> (8 * (i % 4)) & 0xFF;
  }
  return bytes;
}

/// The group whose random bytes decide about this one.
std::size_t draw_of(std::size_t group, std::size_t groups, const std::string& fault) {
  if (fault == "constant_mask") {
    return 0;
  }
  if (fault == "groups_restart") {
    return group % kPeriod;
  }
  const bool is_last_range = group / kRepeated + 1 == groups / kRepeated;
  return fault == "range_repeated" && is_last_range ? group % kRepeated : group;
}

void run_forward(const op::DropoutParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> x = read_floats(ports, "x");
  std::vector<float> y(x.size()), mask(x.size() / 8);
  auto threshold = static_cast<unsigned>(256 * p.p);
  threshold = fault == "nothing_dropped" ? 0 : fault == "share_half" ? threshold / 2 : threshold;
  const float scale = scale_of(p, fault);
  core::parallel_for(x.size() / kGroup, [&](std::size_t group) {
    const auto bytes = random_bytes(p.rng_seed, draw_of(group, x.size() / kGroup, fault));
    std::array<unsigned, 2> bits{};
    for (std::size_t i = 0; i < kGroup; ++i) {
      const bool kept = bytes[i] >= threshold;
      y[group * kGroup + i] = kept ? x[group * kGroup + i] * scale : 0;
      bits[i / 8] |= (kept != (fault == "mask_inverted") ? 1U : 0U) << (i % 8);
    }
    mask[2 * group] = static_cast<float>(bits[0]);
    mask[2 * group + 1] = static_cast<float>(bits[1]);
  });
  write_floats(ports, "y", y, fault);
  write_floats(ports, "mask", mask, fault);
}

void run_backward(const op::DropoutParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> dy = read_floats(ports, "dy");
  const std::vector<float> mask = read_floats(ports, "mask");
  std::vector<float> dx(dy.size());
  const float scale = scale_of(p, fault);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::size_t at = fault == "mask_shifted" ? (i + 1) % dy.size() : i;
    bool kept = (static_cast<unsigned>(mask[at / 8]) >> (at % 8) & 1U) != 0;
    kept = fault == "mask_ignored" || (kept != (fault == "mask_inverted"));
    dx[i] = kept ? dy[i] * scale : 0;
  }
  write_floats(ports, "dx", dx, fault);
}

}  // namespace

const Binding& dropout_fwd() {
  return fp32_op<op::DropoutParams, kForwardFaults, &run_forward>("dropout_fwd");
}

const Binding& dropout_bwd() {
  return fp32_op<op::DropoutParams, kBackwardFaults, &run_backward>("dropout_bwd");
}

}  // namespace numcheck::kernels::sim
