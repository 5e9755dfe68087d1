#include "kernels/cuda/backend.hpp"

#include <utility>

#include <fmt/format.h>

#include "kernels/contract/device_fault.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/illegal_address.hpp"

namespace numcheck::kernels::cuda {
namespace {

class CudaBackend : public Backend {
 public:
  CudaBackend(cuda_support::CudaDevice& device, Bindings bindings) : device_(device), bindings_(bindings) {}

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] const machine::Device& device() const override { return device_.info(); }
  [[nodiscard]] DeviceMemory& memory() override { return device_.memory(); }

  [[nodiscard]] Support supports(const Call& call) override {
    const CudaBinding* binding = find(call);
    if (binding == nullptr) {
      return {false, fmt::format("cuda has no kernel for the op {}", call.c->op->name)};
    }
    if (Support support = takes_no_fault(call); !support.yes && call.inject != kDeviceFault.name) {
      return support;
    }
    std::string obstacle = binding->obstacle(call);
    return {obstacle.empty(), std::move(obstacle)};
  }

  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override {
    Algorithm algorithm = find(call)->algorithm(device_, call);
    return {call.inject.empty() ? std::move(algorithm) : with_illegal_address(std::move(algorithm), device_)};
  }

 private:
  [[nodiscard]] const CudaBinding* find(const Call& call) const {
    return static_cast<const CudaBinding*>(find_binding(bindings_, "cuda", call.c->op->name));
  }

  cuda_support::CudaDevice& device_;
  Bindings bindings_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, Bindings bindings) {
  return std::make_unique<CudaBackend>(device, bindings);
}

}  // namespace numcheck::kernels::cuda
