// The binding of an op that a simulated device computes in FP32 by one function of its parameters.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/sim/op_faults.hpp"
#include "op/field.hpp"

namespace numcheck::kernels::sim {

/// `kFaults`: an array of OpFault with static storage; `run(params, ports, fault)` computes the op, with that fault
/// unless the name is empty. One binding per set of arguments.
template <class P, const auto& kFaults, void (*run)(const P&, std::span<const PortMemory>, const std::string&)>
[[nodiscard]] const Binding& fp32_op(std::string_view op) {
  static const std::vector<FaultInfo> faults = with_store_faults(kFaults);
  static const SimBinding binding{
      {"sim", op},
      [](const Call&, const SimContext&) { return std::string(); },
      [](const Call& call, const SimContext&) {
        return std::vector<Algorithm>{host_algorithm(call, "FP32, one rounding of every result",
                                                     [p = op::from_params<P>(call.c->params), fault = call.inject](
                                                         std::span<const PortMemory> ports) { run(p, ports, fault); })};
      },
      [] { return std::span<const FaultInfo>(faults); },
      [](const Call& call, const SimContext&) { return obstacle_of(kFaults, call); }};
  return binding;
}

}  // namespace numcheck::kernels::sim
