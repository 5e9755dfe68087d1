#include "op/layernorm_bwd.hpp"

#include <array>
#include <vector>

#include "kernels/sim/bindings.hpp"
#include "kernels/sim/norm_gradients.hpp"
#include "kernels/sim/norm_rows.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::array kOwnFaults = {
    OpFault{{"mean_term_missing", "dx lacks the mean of the weighted gradient"},
            [](const Call& call) {
              const auto p = op::from_params<op::LayernormBwdParams>(call.c->params);
              return std::string(p.rows < 1 ? "there are no rows" : "");
            }},
};

const std::vector<OpFault>& faults() {
  static const std::vector<OpFault> all = with_own_faults(norm_backward_faults(), kOwnFaults);
  return all;
}

}  // namespace

const Binding& layernorm_bwd() {
  static const std::vector<FaultInfo> infos = with_store_faults(faults());
  static const SimBinding binding{
      {"sim", "layernorm_bwd"},
      [](const Call&, const SimContext&) { return std::string(); },
      [](const Call& call, const SimContext&) {
        return std::vector<Algorithm>{host_algorithm(
            call, "FP32, rows summed by 128 lanes and a tree, columns by 64",
            [p = op::from_params<op::LayernormBwdParams>(call.c->params),
             fault = call.inject](std::span<const PortMemory> ports) { run_norm_gradients(p, ports, fault); })};
      },
      [] { return std::span<const FaultInfo>(infos); },
      [](const Call& call, const SimContext&) { return obstacle_of(faults(), call); }};
  return binding;
}

}  // namespace numcheck::kernels::sim
