#include "fault_simulator.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "catalog.hpp"
#include "core/error.hpp"
#include "kernels/harness/passes.hpp"
#include "kernels/sim/perturbation.hpp"
#include "kernels/sim/sim.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::app {
namespace {

using kernels::Algorithm;
using kernels::Call;
using kernels::FaultInfo;
using kernels::PortMemory;

class FaultSimulator final : public diagnose::Simulator {
 public:
  explicit FaultSimulator(int sm) : backend_(kernels::sim::make_backend(sm, bindings())) {}

  [[nodiscard]] std::vector<diagnose::SimulatedFault> faults(const plan::Case& c) const override {
    static const std::vector<FaultInfo> all = kernels::sim::faults_of(bindings());
    const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
    std::vector<diagnose::SimulatedFault> found;
    for (const FaultInfo& fault : all) {
      const bool has_any_size = std::ranges::find(kernels::sim::perturbations(), fault.name, &FaultInfo::name) !=
                                kernels::sim::perturbations().end();
      if (!has_any_size && kernels::harness::supports(*backend_, {&c, ports, std::string(fault.name)}).yes) {
        found.push_back({fault.name, fault.doc});
      }
    }
    return found;
  }

  bool run(const plan::Case& given, std::span<const diagnose::SimulatedPort> memory,
           std::string_view fault) const override {
    const plan::Case c = in_full(given, memory);
    std::vector<op::Port> ports;
    std::vector<PortMemory> where;
    for (const diagnose::SimulatedPort& one : memory) {
      ports.push_back(*one.port);
      where.push_back({one.port, one.data});
    }
    const Call call{&c, ports, std::string(fault)};
    if (!kernels::harness::supports(*backend_, call).yes) {
      return false;
    }
    std::vector<Algorithm> algorithms = kernels::harness::algorithms_of(*backend_, call);
    if (algorithms.empty()) {
      throw core::InternalError("the simulated device has no algorithm");
    }
    std::vector<std::byte> workspace(algorithms.front().workspace_bytes);
    static_cast<void>(algorithms.front().launch(where, workspace.data()));
    return true;
  }

 private:
  /// A product rounds to the format that its parameters name, others to that of the port.
  static plan::Case in_full(const plan::Case& given, std::span<const diagnose::SimulatedPort> memory) {
    plan::Case c = given;
    c.backend = "sim";
    c.algorithms = {};
    const auto output =
        std::ranges::find_if(memory, [](const auto& one) { return one.port->role == op::Role::output; });
    if (op::is_product(*c.op) && output != memory.end() && output->port->dtype == core::Dtype::fp32) {
      c.params[*op::field_index(*c.op, "output")] = std::string("fp32");
    }
    return c;
  }

  std::unique_ptr<kernels::Backend> backend_;
};

}  // namespace

std::shared_ptr<const diagnose::Simulator> make_fault_simulator(int sm) {
  return std::make_shared<FaultSimulator>(sm);
}

}  // namespace numcheck::app
