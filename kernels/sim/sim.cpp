#include "kernels/sim/sim.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/strings.hpp"
#include "kernels/contract/device_fault.hpp"
#include "kernels/contract/gemm_class.hpp"
#include "kernels/sim/binding.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/host_memory.hpp"
#include "kernels/sim/perturbation.hpp"
#include "machine/memory.hpp"
#include "model/instruction_table.hpp"

namespace numcheck::kernels::sim {
namespace {

std::string read_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

bool has_fault(std::span<const FaultInfo> faults, std::string_view name) {
  return std::ranges::find(faults, name, &FaultInfo::name) != faults.end();
}

Bindings gemm_alone() {
  static const Binding* const only = &gemm();
  return {&only, 1};
}

class SimBackend final : public Backend {
 public:
  SimBackend(int sm, Bindings bindings) : bindings_(bindings.empty() ? gemm_alone() : bindings) {
    const model::Architecture* architecture = model::find_architecture(sm);
    if (architecture == nullptr) {
      throw core::EnvironmentError(fmt::format("sm_{} cannot be simulated: the earliest modelled architecture is sm_{}",
                                               sm, model::architectures().front().sm));
    }
    context_ = {sm, read_variable("NVIDIA_TF32_OVERRIDE"), architecture->gemm_evidence};
    device_.name = fmt::format("simulated sm_{}", sm);
    device_.sm = sm;
    device_.simulated = true;
    device_.memory_bytes = machine::memory_limit_bytes();
  }

  [[nodiscard]] std::string_view name() const override { return "sim"; }
  [[nodiscard]] const machine::Device& device() const override { return device_; }
  [[nodiscard]] DeviceMemory& memory() override { return memory_; }

  [[nodiscard]] Support supports(const Call& call) override {
    const SimBinding* binding = find(call);
    if (binding == nullptr) {
      return {false, fmt::format("the simulated device does not compute the op {}", call.c->op->name)};
    }
    std::string obstacle = binding->obstacle(call, context_);
    if (obstacle.empty() && !call.inject.empty()) {
      obstacle = fault_obstacle(*binding, call);
    }
    return {obstacle.empty(), std::move(obstacle)};
  }

  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override {
    const Support support = supports(call);
    if (!support.yes) {
      throw core::InternalError("sim: " + support.reason);
    }
    return find(call)->algorithms(call, context_);
  }

  [[nodiscard]] std::vector<std::string> configurations(const Call& call) override {
    std::vector<std::string> keys;
    constexpr std::int64_t kStage = 64;  // of the tiles that the libraries' kernels have
    for (const Algorithm& algorithm : call.c->op->name == "gemm" ? algorithms(call) : std::vector<Algorithm>()) {
      keys.push_back(algorithm.label + " | " + gemm_class(call, kStage, 1));
    }
    return keys;
  }

 private:
  [[nodiscard]] const SimBinding* find(const Call& call) const {
    return static_cast<const SimBinding*>(find_binding(bindings_, "sim", call.c->op->name));
  }

  [[nodiscard]] std::string fault_obstacle(const SimBinding& binding, const Call& call) const {
    if (perturbation_named(call.inject, 0)) {
      return perturbation_obstacle(call.inject, call.ports);
    }
    if (has_fault(binding.faults(), call.inject)) {
      return binding.fault_obstacle(call, context_);
    }
    if (call.inject == kDeviceFault.name) {
      return not_planted_here(call.inject);
    }
    const std::vector<FaultInfo> all = faults_of(bindings_);
    if (has_fault(all, call.inject)) {
      return fmt::format("the fault {} does not apply: {} has no such fault", call.inject, call.c->op->name);
    }
    std::vector<std::string_view> names;
    std::ranges::transform(all, std::back_inserter(names), &FaultInfo::name);
    const std::string_view nearest = core::nearest_name(call.inject, names);
    throw core::UsageError(fmt::format("unknown fault \"{}\"{}", call.inject,
                                       nearest.empty()
                                           ? fmt::format("; a simulated device has {}", fmt::join(names, " "))
                                           : fmt::format(" (did you mean \"{}\"?)", nearest)));
  }

  Bindings bindings_;
  SimContext context_;
  machine::Device device_;
  HostMemory memory_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(int sm, Bindings bindings) {
  return std::make_unique<SimBackend>(sm, bindings);
}

std::vector<FaultInfo> faults_of(Bindings bindings) {
  std::vector<FaultInfo> all;
  for (const Binding* binding : bindings) {
    if (binding->backend != "sim") {
      continue;
    }
    for (const FaultInfo& fault : static_cast<const SimBinding*>(binding)->faults()) {
      if (!has_fault(all, fault.name)) {
        all.push_back(fault);
      }
    }
  }
  if (!all.empty()) {
    all.insert(all.end(), perturbations().begin(), perturbations().end());
  }
  return all;
}

}  // namespace numcheck::kernels::sim
