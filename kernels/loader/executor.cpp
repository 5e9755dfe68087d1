#include "kernels/loader/executor.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "kernels/harness/harness.hpp"
#include "kernels/harness/memory_fault.hpp"
#include "kernels/harness/passes.hpp"
#include "kernels/loader/backend_set.hpp"
#include "kernels/loader/probe.hpp"
#include "kernels/sim/sim.hpp"
#include "plan/backend_name.hpp"

namespace numcheck::kernels::loader {
namespace {

class DeviceExecutor : public worker::Executor {
 public:
  DeviceExecutor(std::unique_ptr<CudaBackends> cuda, Bindings bindings)
      : device_(cuda->device()), bindings_(bindings), cuda_(std::move(cuda)) {}
  DeviceExecutor(std::unique_ptr<Backend> sim, Bindings bindings)
      : device_(sim->device()), bindings_(bindings), sim_(std::move(sim)) {}

  [[nodiscard]] const machine::Device& device() const override { return device_; }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> libraries() const override {
    return cuda_ ? cuda_->libraries() : std::vector<std::pair<std::string, std::string>>();
  }

  [[nodiscard]] worker::Support supports(const plan::Case& c, const worker::ExecuteOptions& options) override {
    Backend* backend = backend_of(c);
    if (backend == nullptr) {
      return {false, no_backend(c)};
    }
    const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
    const Call call{&c, ports, harness::is_memory_fault(options.inject) ? std::string() : options.inject};
    harness_.note_call();
    worker::Support support = harness::supports(*backend, call);
    if (support.yes && options.configurations) {
      support.configurations = harness::configurations_of(*backend, call);
    }
    return support;
  }

  [[nodiscard]] worker::Outcome execute(const plan::Case& c, std::span<const worker::HostPort> ports,
                                        const worker::ExecuteOptions& options, const worker::RunSink& sink) override {
    Backend* backend = backend_of(c);
    if (backend == nullptr) {
      return {worker::Outcome::Kind::unsupported, no_backend(c), 0};
    }
    return harness_.run(*backend, c, ports, options, sink);
  }

  [[nodiscard]] std::optional<worker::DeviceLoss> device_loss() noexcept override {
    return cuda_ ? harness_.device_loss(cuda_->memory()) : std::nullopt;
  }

 private:
  [[nodiscard]] Backend* backend_of(const plan::Case& c) {
    return find(c.backend == plan::kAutoBackend ? preferred(c.op->name) : plan::backend_of(c.backend));
  }

  /// Why there is no backend: none has the op under that name, or it needs a card.
  [[nodiscard]] std::string no_backend(const plan::Case& c) const {
    if (find_binding(bindings_, plan::backend_of(c.backend), c.op->name) != nullptr) {
      return fmt::format("the backend {} needs a CUDA device; this is {}", c.backend, device_.name);
    }
    std::vector<std::string_view> having;
    for (const Binding* binding : bindings_) {
      if (binding->op == c.op->name) {
        having.push_back(binding->backend);
      }
    }
    return fmt::format("{} has no {}; backends that have it: {}", c.backend, c.op->name, fmt::join(having, ", "));
  }

  [[nodiscard]] std::string_view preferred(std::string_view op) const {
    const auto first = std::ranges::find(bindings_, op, [](const Binding* binding) { return binding->op; });
    return !cuda_ || first == bindings_.end() ? "sim" : (*first)->backend;
  }

  Backend* find(std::string_view name) {
    if (name == "sim") {
      if (!sim_) {
        sim_ = sim::make_backend(device_.sm, bindings_);
      }
      return sim_.get();
    }
    return cuda_ ? cuda_->find(name) : nullptr;
  }

  machine::Device device_;
  Bindings bindings_;
  std::unique_ptr<CudaBackends> cuda_;
  std::unique_ptr<Backend> sim_;
  harness::Harness harness_;
};

std::unique_ptr<worker::Executor> cuda_executor(int index, const DriverState& driver, const ExecutorOptions& options) {
  if (driver.kind != DriverState::Kind::works) {
    throw core::EnvironmentError(fmt::format("cuda:{} cannot be used: {}", index, driver.sentence));
  }
  if (index >= driver.devices) {
    throw core::EnvironmentError(fmt::format(
        "there is no cuda:{}; this machine has {} visible CUDA device{} (cuda:0{})", index, driver.devices,
        driver.devices == 1 ? "" : "s", driver.devices == 1 ? "" : fmt::format(" to cuda:{}", driver.devices - 1)));
  }
  return make_executor(open_cuda_device(index, options), options.bindings);
}

}  // namespace

std::unique_ptr<worker::Executor> make_executor(std::unique_ptr<CudaBackends> backends, Bindings bindings) {
  return std::make_unique<DeviceExecutor>(std::move(backends), bindings);
}

std::unique_ptr<worker::Executor> make_executor(const machine::DeviceChoice& choice, const ExecutorOptions& options) {
  using Kind = machine::DeviceChoice::Kind;
  if (choice.kind == Kind::sim) {
    return std::make_unique<DeviceExecutor>(sim::make_backend(choice.sm, options.bindings), options.bindings);
  }
  const DriverState driver = probe_driver();
  if (choice.kind == Kind::cuda) {
    return cuda_executor(choice.index, driver, options);
  }
  switch (driver.kind) {
    case DriverState::Kind::works:
      return cuda_executor(0, driver, options);
    case DriverState::Kind::absent:
      return std::make_unique<DeviceExecutor>(sim::make_backend(machine::DeviceChoice{}.sm, options.bindings),
                                              options.bindings);
    case DriverState::Kind::broken:
      break;
  }
  throw core::EnvironmentError(driver.sentence);
}

}  // namespace numcheck::kernels::loader
