#include "kernels/cuda/backend.hpp"

#include <fmt/format.h>

#include "kernels/cuda/gemm.hpp"

namespace numcheck::kernels {
namespace {

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(CudaDevice& device) : device_(device) {}

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] const machine::Device& device() const override { return device_.info(); }
  [[nodiscard]] DeviceMemory& memory() override { return device_.memory(); }

  [[nodiscard]] Support supports(const Call& call) override {
    if (call.c->op->name != "gemm") {
      return {false, fmt::format("cuda has no kernel for the op {}", call.c->op->name)};
    }
    if (!call.inject.empty()) {
      return {false, fmt::format("the fault {} can be planted in a simulated device only", call.inject)};
    }
    std::string obstacle = cuda::gemm_obstacle(call);
    return {obstacle.empty(), std::move(obstacle)};
  }

  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override {
    return {cuda::gemm_algorithm(device_, call)};
  }

 private:
  CudaDevice& device_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(CudaDevice& device) {
  return std::make_unique<CudaBackend>(device);
}

}  // namespace numcheck::kernels
