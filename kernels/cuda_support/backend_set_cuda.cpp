#include <cuda_runtime_api.h>

#include "core/error.hpp"
#include "kernels/cublaslt/backend.hpp"
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda_support/backend_set.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels {
namespace {

class OpenDevice : public CudaBackends {
 public:
  OpenDevice(int index, std::string lib_dir)
      : device_(index), own_(make_cuda_backend(device_)), lib_dir_(std::move(lib_dir)) {}

  [[nodiscard]] const machine::Device& device() const override { return device_.info(); }

  [[nodiscard]] Backend* find(std::string_view name) override {
    if (name == "cuda") {
      return own_.get();
    }
    return name == "cublaslt" ? &cublaslt() : nullptr;
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> libraries() override {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    std::string lt;
    try {
      lt = cublaslt_version_text(cublaslt());
    } catch (const core::Error& error) {
      lt = error.what();
    }
    return {{"cuda_driver", cuda_version_text(driver)}, {"cuda_runtime", cuda_version_text(runtime)}, {"cublaslt", lt}};
  }

 private:
  Backend& cublaslt() {
    if (!lt_) {
      lt_ = make_cublaslt_backend(device_, lib_dir_);
    }
    return *lt_;
  }

  CudaDevice device_;
  std::unique_ptr<Backend> own_;
  std::unique_ptr<Backend> lt_;
  std::string lib_dir_;
};

}  // namespace

std::unique_ptr<CudaBackends> open_cuda_device(int index, const std::string& lib_dir) {
  return std::make_unique<OpenDevice>(index, lib_dir);
}

}  // namespace numcheck::kernels
