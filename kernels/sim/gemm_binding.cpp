#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/sim/binding.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fault_table.hpp"
#include "kernels/sim/gemm.hpp"
#include "kernels/sim/sim.hpp"
#include "model/schedule.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::sim {
namespace {

/// The available algorithms; the first one is the heuristic's choice.
constexpr std::array kSplits = {SplitK{1}, SplitK{2}, SplitK{4}, SplitK{4, SplitK::Reduction::output_type},
                                SplitK{3, SplitK::Reduction::in_place}};

std::string obstacle(const Call& call, const SimContext& context) {
  std::string found = sim_gemm_obstacle(*call.c->mode, context.sm);
  if (found.empty() && op::has_scales_in_products(op::from_params<op::GemmParams>(call.c->params)) &&
      context.sm < 100) {
    found = fmt::format(
        "MXFP8 products need instructions that multiply with scales, which begin with sm_100; this device is a "
        "simulated sm_{}",
        context.sm);
  }
  return found;
}

SimGemm describe(const Call& call, const SimContext& context) {
  return make_sim_gemm(call, context.sm, context.tf32_override);
}

/// Slices are rounded to 16-bit outputs of sums in FP32, if there is something to add in each.
bool has_split(const SimGemm& gemm, const SplitK& split) {
  if (split.slices > 1 && op::has_line_scales(gemm.params)) {
    return false;
  }
  const bool narrow = gemm.output == core::Dtype::bf16 || gemm.output == core::Dtype::fp16;
  const auto slices = model::slices_of(schedule_of(gemm, split), gemm.params.k).size();
  return !split.rounds() || (narrow && gemm.mode->compute == op::Compute::fp32 && !gemm.mode->scaled &&
                             slices == static_cast<std::size_t>(split.slices));
}

Algorithm algorithm(const Call& call, const SimContext& context, const SplitK& split) {
  const SimGemm gemm = describe(call, context);
  Algorithm a;
  a.label = fmt::format("simulated sm_{}, {}", gemm.sm, describe(split));
  a.details = {{"schedule", schedule_of(gemm, split).text},
               {"split_k", std::to_string(split.slices)},
               {"evidence", context.evidence},
               {"NVIDIA_TF32_OVERRIDE", context.tf32_override.empty() ? "unset" : context.tf32_override}};
  if (split.rounds()) {
    a.details.emplace_back("slices", describe(split));
    a.rounding.slices = split.slices;
  }
  if (gemm.params.in_place) {
    a.details.emplace_back("addend", "in place");
    a.rounding.in_place = true;
  }
  if (!call.inject.empty()) {
    a.details.emplace_back("fault", call.inject);
  }
  a.launch = [gemm, split, fault = call.inject](std::span<const PortMemory> ports, std::byte*) {
    run_sim_gemm(gemm, ports, split, fault);
    return not_measured();
  };
  return a;
}

std::vector<Algorithm> algorithms(const Call& call, const SimContext& context) {
  using Kind = plan::AlgorithmSpec::Kind;
  const plan::AlgorithmSpec& spec = call.c->algorithms;
  const std::int64_t requested = spec.kind == Kind::heuristic ? 1 : spec.kind == Kind::top ? spec.top : kSplits.size();
  std::vector<Algorithm> found;
  const SimGemm gemm = describe(call, context);
  for (const SplitK& split : kSplits) {
    if (static_cast<std::int64_t>(found.size()) < requested && has_split(gemm, split)) {
      found.push_back(algorithm(call, context, split));
    }
  }
  return found;
}

}  // namespace

const Binding& gemm() {
  static const SimBinding binding{
      {"sim", "gemm"}, &obstacle, &algorithms, &sim_faults, [](const Call& call, const SimContext& context) {
        return fault_obstacle(call.inject, describe(call, context));
      }};
  return binding;
}

}  // namespace numcheck::kernels::sim
