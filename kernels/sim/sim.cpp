#include "kernels/sim/sim.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "kernels/sim/fault_table.hpp"
#include "kernels/sim/gemm.hpp"
#include "kernels/sim/host_memory.hpp"
#include "machine/memory.hpp"
#include "model/instruction_table.hpp"
#include "model/schedule.hpp"

namespace numcheck::kernels {
namespace {

/// Slices of the algorithms on offer; the first one is the heuristic's choice.
constexpr std::array kSplits = {1, 2, 4};

std::optional<std::string> read_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

class SimBackend final : public Backend {
 public:
  explicit SimBackend(int sm) : tf32_override_(read_variable("NVIDIA_TF32_OVERRIDE")) {
    const model::Architecture* architecture = model::find_architecture(sm);
    if (architecture == nullptr) {
      throw core::EnvironmentError(fmt::format("sm_{} cannot be simulated: the earliest modelled architecture is sm_{}",
                                               sm, model::architectures().front().sm));
    }
    evidence_ = architecture->gemm_evidence;
    device_.name = fmt::format("simulated sm_{}", sm);
    device_.sm = sm;
    device_.simulated = true;
    device_.memory_bytes = machine::memory_limit_bytes();
  }

  [[nodiscard]] std::string_view name() const override { return "sim"; }
  [[nodiscard]] const machine::Device& device() const override { return device_; }
  [[nodiscard]] DeviceMemory& memory() override { return memory_; }

  [[nodiscard]] Support supports(const Call& call) override {
    if (call.c->op->name != "gemm") {
      return {false, fmt::format("the simulated device has no {}", call.c->op->name)};
    }
    if (std::string obstacle = sim_gemm_obstacle(*call.c->mode, device_.sm); !obstacle.empty()) {
      return {false, std::move(obstacle)};
    }
    if (call.inject.empty()) {
      return {};
    }
    std::string obstacle = fault_obstacle(call.inject, describe(call));
    return {obstacle.empty(), std::move(obstacle)};
  }

  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override {
    const Support support = supports(call);
    if (!support.yes) {
      throw core::InternalError("sim: " + support.reason);
    }
    using Kind = plan::AlgorithmSpec::Kind;
    const plan::AlgorithmSpec& spec = call.c->algorithms;
    const std::int64_t wanted = spec.kind == Kind::heuristic ? 1 : spec.kind == Kind::top ? spec.top : kSplits.size();
    std::vector<Algorithm> algorithms;
    for (const int split_k : kSplits) {
      if (static_cast<std::int64_t>(algorithms.size()) < wanted) {
        algorithms.push_back(algorithm(call, split_k));
      }
    }
    return algorithms;
  }

 private:
  [[nodiscard]] SimGemm describe(const Call& call) const {
    return make_sim_gemm(call, device_.sm, tf32_override_.value_or(""));
  }

  [[nodiscard]] Algorithm algorithm(const Call& call, int split_k) const {
    const SimGemm gemm = describe(call);
    const model::Schedule schedule = model::gemm_schedule(
        gemm.sm, *gemm.mode, op::gemm_promotes(gemm.params, *gemm.mode), gemm.uses_tf32(), split_k);
    Algorithm a;
    a.label =
        fmt::format("simulated sm_{}, {}", gemm.sm, split_k == 1 ? "unsplit" : fmt::format("split-K {}", split_k));
    a.details = {{"schedule", schedule.text},
                 {"split_k", std::to_string(split_k)},
                 {"evidence", evidence_},
                 {"NVIDIA_TF32_OVERRIDE", tf32_override_.value_or("unset")}};
    if (!call.inject.empty()) {
      a.details.emplace_back("fault", call.inject);
    }
    a.launch = [gemm, split_k, fault = call.inject](std::span<const PortMemory> ports, std::byte*) {
      run_sim_gemm(gemm, ports, split_k, fault);
      return 0.0;
    };
    return a;
  }

  std::optional<std::string> tf32_override_;
  std::string evidence_;
  machine::Device device_;
  HostMemory memory_;
};

}  // namespace

std::unique_ptr<Backend> make_sim_backend(int sm) {
  return std::make_unique<SimBackend>(sm);
}

}  // namespace numcheck::kernels
