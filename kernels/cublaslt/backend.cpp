#include "kernels/cublaslt/backend.hpp"

#include <fmt/format.h>

#include "kernels/contract/device_fault.hpp"
#include "kernels/cublas_support/library.hpp"
#include "kernels/cublaslt/bindings.hpp"
#include "kernels/cublaslt/gemm.hpp"
#include "kernels/cublaslt/grouped_gemm.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::kernels::cublaslt {
namespace {

bool is_grouped(const Call& call) {
  return call.c->op == &op::grouped_gemm();
}

class CublasLtBackend : public Backend {
 public:
  CublasLtBackend(cuda_support::CudaDevice& device, const std::string& lib_dir)
      : device_(device), lt_(load(device, lib_dir)) {}

  [[nodiscard]] std::string_view name() const override { return "cublaslt"; }
  [[nodiscard]] const machine::Device& device() const override { return device_.info(); }
  [[nodiscard]] DeviceMemory& memory() override { return device_.memory(); }

  [[nodiscard]] Support supports(const Call& call) override {
    const bool grouped = is_grouped(call);
    if (!grouped && call.c->op != &op::gemm()) {
      return {false, fmt::format("cublaslt does not compute the op {}", call.c->op->name)};
    }
    if (Support support = takes_no_fault(call); !support.yes) {
      return support;
    }
    const auto obstacle_of = grouped ? &grouped_obstacle : &gemm_obstacle;
    if (std::string obstacle = obstacle_of(call, device_.info().sm, lt_->get_version()); !obstacle.empty()) {
      return {false, std::move(obstacle)};
    }
    return grouped ? grouped_support(*lt_, device_, call) : gemm_support(*lt_, device_, memo_, call);
  }

  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override {
    return is_grouped(call) ? grouped_algorithms(*lt_, device_, call) : gemm_algorithms(*lt_, device_, memo_, call);
  }

  [[nodiscard]] std::vector<std::string> configurations(const Call& call) override {
    return is_grouped(call) ? std::vector<std::string>() : gemm_configurations(*lt_, device_, memo_, call);
  }

  [[nodiscard]] std::string version_text() const { return fmt::format("{} ({})", lt_->version(), lt_->path()); }

 private:
  static std::unique_ptr<cublas_support::CublasLt> load(const cuda_support::CudaDevice& device,
                                                        const std::string& lib_dir) {
    device.use();  // the handle belongs to the current device
    return std::make_unique<cublas_support::CublasLt>(lib_dir);
  }

  cuda_support::CudaDevice& device_;
  std::unique_ptr<cublas_support::CublasLt> lt_;
  HeuristicMemo memo_;
};

}  // namespace

const Binding& gemm() {
  static const Binding binding{"cublaslt", "gemm", kArithmetic};
  return binding;
}

const Binding& grouped_gemm() {
  static const Binding binding{"cublaslt", "grouped_gemm", kArithmetic};
  return binding;
}

std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const std::string& lib_dir) {
  return std::make_unique<CublasLtBackend>(device, lib_dir);
}

std::string version_text(const Backend& backend) {
  const auto* lt = dynamic_cast<const CublasLtBackend*>(&backend);
  return lt == nullptr ? std::string() : lt->version_text();
}

}  // namespace numcheck::kernels::cublaslt
