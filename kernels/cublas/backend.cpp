#include "kernels/cublas/backend.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/contract/device_fault.hpp"
#include "kernels/cublas/binding.hpp"
#include "kernels/cublas/library.hpp"

namespace numcheck::kernels::cublas {
namespace {

constexpr std::string_view kName = "cublas";

class CublasBackend : public Backend {
 public:
  CublasBackend(cuda_support::CudaDevice& device, ExecutorOptions options)
      : device_(device), options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] const machine::Device& device() const override { return device_.info(); }
  [[nodiscard]] DeviceMemory& memory() override { return device_.memory(); }

  [[nodiscard]] Support supports(const Call& call) override {
    const CublasBinding* binding = find(call);
    if (binding == nullptr) {
      return {false, fmt::format("cublas does not compute the op {} here; cublaslt has the products of two matrices",
                                 call.c->op->name)};
    }
    if (Support support = takes_no_fault(call); !support.yes) {
      return support;
    }
    if (std::string obstacle = binding->obstacle(call); !obstacle.empty()) {
      return {false, std::move(obstacle)};
    }
    load();
    return {problem_.empty(), problem_};
  }

  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override {
    return find(call)->algorithms(*library_, device_, call);
  }

 private:
  [[nodiscard]] const CublasBinding* find(const Call& call) const {
    return static_cast<const CublasBinding*>(find_binding(options_.bindings, kName, call.c->op->name));
  }

  void load() {
    if (library_.has_value() || !problem_.empty()) {
      return;
    }
    device_.use();  // the handle belongs to the current device
    try {
      library_.emplace(options_.lib_dir);
    } catch (const core::EnvironmentError& error) {
      problem_ = error.what();
    }
  }

  cuda_support::CudaDevice& device_;
  ExecutorOptions options_;
  std::optional<Cublas> library_;
  std::string problem_;  ///< why the library is unavailable; empty until it has been looked for
};

}  // namespace

std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const ExecutorOptions& options) {
  return std::make_unique<CublasBackend>(device, options);
}

}  // namespace numcheck::kernels::cublas
