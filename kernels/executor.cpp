#include "kernels/executor.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.hpp"
#include "kernels/cuda_support/backend_set.hpp"
#include "kernels/cuda_support/probe.hpp"
#include "kernels/harness.hpp"
#include "kernels/sim/sim.hpp"

namespace numcheck::kernels {
namespace {

constexpr std::array<std::string_view, 3> kBackendNames = {"cublaslt", "cuda", "sim"};

class DeviceExecutor : public run::Executor {
 public:
  explicit DeviceExecutor(std::unique_ptr<CudaBackends> cuda) : device_(cuda->device()), cuda_(std::move(cuda)) {}
  explicit DeviceExecutor(std::unique_ptr<Backend> sim) : device_(sim->device()), sim_(std::move(sim)) {}

  [[nodiscard]] const machine::Device& device() const override { return device_; }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> libraries() const override {
    return cuda_ ? cuda_->libraries() : std::vector<std::pair<std::string, std::string>>();
  }

  [[nodiscard]] run::Outcome execute(const plan::Case& c, std::span<const run::HostPort> ports,
                                     const run::ExecuteOptions& options, const run::RunSink& sink) override {
    Backend* backend = find(c.backend);
    if (backend == nullptr) {
      return {run::Outcome::Kind::unsupported,
              fmt::format("the backend {} needs a CUDA device; this is {}", c.backend, device_.name), 0};
    }
    return harness_.run(*backend, c, ports, options, sink);
  }

 private:
  Backend* find(const std::string& name) {
    if (name == "sim" || (name == "auto" && !cuda_)) {
      if (!sim_) {
        sim_ = make_sim_backend(device_.sm);
      }
      return sim_.get();
    }
    return cuda_ ? cuda_->find(name == "auto" ? "cublaslt" : name) : nullptr;
  }

  machine::Device device_;
  std::unique_ptr<CudaBackends> cuda_;
  std::unique_ptr<Backend> sim_;
  Harness harness_;
};

std::unique_ptr<run::Executor> cuda_executor(int index, const DriverState& driver, const std::string& lib_dir) {
  if (driver.kind != DriverState::Kind::works) {
    throw core::EnvironmentError(fmt::format("cuda:{} cannot be used: {}", index, driver.sentence));
  }
  if (index >= driver.devices) {
    throw core::EnvironmentError(fmt::format(
        "there is no cuda:{}; this machine shows {} CUDA device{} (cuda:0{})", index, driver.devices,
        driver.devices == 1 ? "" : "s", driver.devices == 1 ? "" : fmt::format(" to cuda:{}", driver.devices - 1)));
  }
  return std::make_unique<DeviceExecutor>(open_cuda_device(index, lib_dir));
}

}  // namespace

std::unique_ptr<run::Executor> make_executor(const machine::DeviceChoice& choice, const ExecutorOptions& options) {
  using Kind = machine::DeviceChoice::Kind;
  if (choice.kind == Kind::sim) {
    return std::make_unique<DeviceExecutor>(make_sim_backend(choice.sm));
  }
  const DriverState driver = probe_driver();
  if (choice.kind == Kind::cuda) {
    return cuda_executor(choice.index, driver, options.lib_dir);
  }
  switch (driver.kind) {
    case DriverState::Kind::works:
      return cuda_executor(0, driver, options.lib_dir);
    case DriverState::Kind::absent:
      return std::make_unique<DeviceExecutor>(make_sim_backend(machine::DeviceChoice{}.sm));
    case DriverState::Kind::broken:
      break;
  }
  throw core::EnvironmentError(driver.sentence);
}

std::span<const std::string_view> backend_names() noexcept {
  return kBackendNames;
}

}  // namespace numcheck::kernels
