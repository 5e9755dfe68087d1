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

namespace numcheck::kernels::sim {
namespace {

/// Slices of the available algorithms; the first one is the heuristic's choice.
constexpr std::array kSplits = {1, 2, 4};

SimGemm describe(const Call& call, const SimContext& context) {
  return make_sim_gemm(call, context.sm, context.tf32_override);
}

Algorithm algorithm(const Call& call, const SimContext& context, int split_k) {
  const SimGemm gemm = describe(call, context);
  const model::Schedule schedule =
      model::gemm_schedule(gemm.sm, *gemm.mode, op::gemm_promotes(gemm.params, *gemm.mode), gemm.uses_tf32(), split_k);
  Algorithm a;
  a.label = fmt::format("simulated sm_{}, {}", gemm.sm, split_k == 1 ? "unsplit" : fmt::format("split-K {}", split_k));
  a.details = {{"schedule", schedule.text},
               {"split_k", std::to_string(split_k)},
               {"evidence", context.evidence},
               {"NVIDIA_TF32_OVERRIDE", context.tf32_override.empty() ? "unset" : context.tf32_override}};
  if (gemm.params.in_place) {
    a.details.emplace_back("addend", "in place");
    a.rounding.in_place = true;
  }
  if (!call.inject.empty()) {
    a.details.emplace_back("fault", call.inject);
  }
  a.launch = [gemm, split_k, fault = call.inject](std::span<const PortMemory> ports, std::byte*) {
    run_sim_gemm(gemm, ports, split_k, fault);
    return not_measured();
  };
  return a;
}

std::vector<Algorithm> algorithms(const Call& call, const SimContext& context) {
  using Kind = plan::AlgorithmSpec::Kind;
  const plan::AlgorithmSpec& spec = call.c->algorithms;
  const std::int64_t requested = spec.kind == Kind::heuristic ? 1 : spec.kind == Kind::top ? spec.top : kSplits.size();
  std::vector<Algorithm> found;
  for (const int split_k : kSplits) {
    if (static_cast<std::int64_t>(found.size()) < requested) {
      found.push_back(algorithm(call, context, split_k));
    }
  }
  return found;
}

}  // namespace

const Binding& gemm() {
  static const SimBinding binding{
      {"sim", "gemm"},
      [](const Call& call, const SimContext& context) { return sim_gemm_obstacle(*call.c->mode, context.sm); },
      &algorithms,
      &sim_faults,
      [](const Call& call, const SimContext& context) { return fault_obstacle(call.inject, describe(call, context)); }};
  return binding;
}

}  // namespace numcheck::kernels::sim
