#include "kernels/loader/backend_set.hpp"

#include <array>
#include <utility>

#include <cuda_runtime_api.h>

#include "core/error.hpp"
#include "kernels/cublas/backend.hpp"
#include "kernels/cublaslt/backend.hpp"
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "kernels/cudnn/backend.hpp"
#include "kernels/transformer_engine/backend.hpp"
#include "kernels/unfused/backend.hpp"

namespace numcheck::kernels::loader {
namespace {

/// Creates a backend of a CUDA device.
struct Loader {
  std::string_view name;
  std::unique_ptr<Backend> (*make)(cuda_support::CudaDevice&, const ExecutorOptions&);
};

constexpr std::array kLoaders = {
    Loader{"cublaslt", [](cuda_support::CudaDevice& device,
                          const ExecutorOptions& options) { return cublaslt::make_backend(device, options.lib_dir); }},
    Loader{"cublas", &cublas::make_backend},
    Loader{"cuda", [](cuda_support::CudaDevice& device,
                      const ExecutorOptions& options) { return cuda::make_backend(device, options.bindings); }},
    Loader{"cudnn", &cudnn::make_backend},
    Loader{"transformer_engine", &transformer_engine::make_backend},
    Loader{"unfused", &unfused::make_backend},
};

class OpenDevice : public CudaBackends {
 public:
  OpenDevice(int index, ExecutorOptions options) : device_(index), options_(std::move(options)) {}

  [[nodiscard]] const machine::Device& device() const override { return device_.info(); }

  [[nodiscard]] DeviceMemory& memory() override { return device_.memory(); }

  [[nodiscard]] Backend* find(std::string_view name) override {
    for (std::size_t i = 0; i < kLoaders.size(); ++i) {
      if (kLoaders[i].name == name) {
        if (!backends_[i]) {
          backends_[i] = kLoaders[i].make(device_, options_);
        }
        return backends_[i].get();
      }
    }
    return nullptr;
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> libraries() override {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    std::string lt;
    try {
      lt = cublaslt::version_text(*find("cublaslt"));
    } catch (const core::Error& error) {
      lt = error.what();
    }
    std::vector<std::pair<std::string, std::string>> list = {{"cuda_driver", cuda_support::cuda_version_text(driver)},
                                                             {"cuda_runtime", cuda_support::cuda_version_text(runtime)},
                                                             {"cublaslt", lt}};
    if (std::string text = cudnn::version_text(options_); !text.empty()) {
      list.emplace_back("cudnn", std::move(text));
    }
    for (auto& version : transformer_engine::versions_in_use(options_)) {
      list.push_back(std::move(version));
    }
    return list;
  }

 private:
  cuda_support::CudaDevice device_;
  ExecutorOptions options_;
  std::array<std::unique_ptr<Backend>, kLoaders.size()> backends_;
};

}  // namespace

std::unique_ptr<CudaBackends> open_cuda_device(int index, const ExecutorOptions& options) {
  return std::make_unique<OpenDevice>(index, options);
}

}  // namespace numcheck::kernels::loader
