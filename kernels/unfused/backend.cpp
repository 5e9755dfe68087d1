#include "kernels/unfused/backend.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/contract/device_fault.hpp"
#include "kernels/cublas_support/library.hpp"
#include "kernels/unfused/binding.hpp"
#include "op/attention_params.hpp"

namespace numcheck::kernels::unfused {
namespace {

constexpr std::string_view kName = "unfused";

class UnfusedBackend : public Backend {
 public:
  UnfusedBackend(cuda_support::CudaDevice& device, const ExecutorOptions& options)
      : device_(device), bindings_(options.bindings), lt_(load(device, options.lib_dir)) {}

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] const machine::Device& device() const override { return device_.info(); }
  [[nodiscard]] DeviceMemory& memory() override { return device_.memory(); }

  [[nodiscard]] Support supports(const Call& call) override {
    if (find(call) == nullptr) {
      return {false, fmt::format("unfused does not compute the op {}", call.c->op->name)};
    }
    if (Support support = takes_no_fault(call); !support.yes) {
      return support;
    }
    try {
      const Algorithm algorithm = prepare(call);
      std::string obstacle = memory_obstacle(call, algorithm.workspace_bytes);
      return {obstacle.empty(), std::move(obstacle)};
    } catch (const NotSupported& refusal) {
      return {false, refusal.what()};
    }
  }

  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override {
    std::vector<Algorithm> list;
    list.push_back(prepare(call));
    return list;
  }

 private:
  static std::unique_ptr<cublas_support::CublasLt> load(const cuda_support::CudaDevice& device,
                                                        const std::string& lib_dir) {
    device.use();  // the handle belongs to the current device
    return std::make_unique<cublas_support::CublasLt>(lib_dir);
  }

  [[nodiscard]] const UnfusedBinding* find(const Call& call) const {
    return static_cast<const UnfusedBinding*>(find_binding(bindings_, kName, call.c->op->name));
  }

  [[nodiscard]] Algorithm prepare(const Call& call) {
    device_.use();
    return find(call)->algorithm(*lt_, device_, call);
  }

  /// Fused attention needs no memory for the scores; here it is what limits the lengths.
  [[nodiscard]] std::string memory_obstacle(const Call& call, std::size_t workspace) const {
    std::size_t needed = workspace;
    for (const op::Port& port : call.ports) {
      needed += port.extent_bytes();
    }
    const auto available = static_cast<double>(device_.info().memory_bytes);
    constexpr double kGiB = 1 << 30;
    if (static_cast<double>(needed) <= available) {
      return {};
    }
    return fmt::format(
        "unfused attention stores the scores of all heads: this case needs {:.3g} GiB of device memory, and the device "
        "has {:.3g} GiB; use fewer heads or shorter sequences, or a backend with a fused kernel",
        static_cast<double>(needed) / kGiB, available / kGiB);
  }

  cuda_support::CudaDevice& device_;
  Bindings bindings_;
  std::unique_ptr<cublas_support::CublasLt> lt_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const ExecutorOptions& options) {
  return std::make_unique<UnfusedBackend>(device, options);
}

}  // namespace numcheck::kernels::unfused
