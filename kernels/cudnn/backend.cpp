#include "kernels/cudnn/backend.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/contract/device_fault.hpp"
#include "kernels/cudnn/binding.hpp"
#include "kernels/cudnn/library.hpp"
#include "kernels/harness/recent_algorithms.hpp"

namespace numcheck::kernels::cudnn {
namespace {

constexpr std::string_view kName = "cudnn";

class CudnnBackend : public Backend {
 public:
  CudnnBackend(cuda_support::CudaDevice& device, ExecutorOptions options)
      : device_(device), options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] const machine::Device& device() const override { return device_.info(); }
  [[nodiscard]] DeviceMemory& memory() override { return device_.memory(); }

  [[nodiscard]] Support supports(const Call& call) override {
    const CudnnBinding* binding = find(call);
    if (binding == nullptr) {
      return {false, fmt::format("cudnn does not compute the op {}", call.c->op->name)};
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
    return recent_.of(call, [this](const Call& asked) {
      return find(asked)->algorithms({*library_, handle_->get(), device_}, asked);
    });
  }

 private:
  [[nodiscard]] const CudnnBinding* find(const Call& call) const {
    return static_cast<const CudnnBinding*>(find_binding(options_.bindings, kName, call.c->op->name));
  }

  void load() {
    if (handle_.has_value() || !problem_.empty()) {
      return;
    }
    device_.use();  // the handle belongs to the current device
    try {
      library_.emplace(options_.lib_dir);
      handle_.emplace(*library_, device_.stream());
    } catch (const core::EnvironmentError& error) {
      problem_ = error.what();
    }
  }

  cuda_support::CudaDevice& device_;
  ExecutorOptions options_;
  std::optional<Library> library_;
  std::optional<Handle> handle_;
  harness::RecentAlgorithms recent_;  ///< after what they use: the library and the handle
  std::string problem_;               ///< why the library is unavailable; empty until it has been looked for
};

}  // namespace

std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const ExecutorOptions& options) {
  return std::make_unique<CudnnBackend>(device, options);
}

std::string version_text(const ExecutorOptions& options) try {
  const Library library(options.lib_dir);
  return fmt::format("{} ({})", library.version(), library.path());
} catch (const core::EnvironmentError&) {
  return {};
}

}  // namespace numcheck::kernels::cudnn
