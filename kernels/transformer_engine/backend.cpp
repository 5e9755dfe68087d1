#include "kernels/transformer_engine/backend.hpp"

#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/contract/device_fault.hpp"
#include "kernels/transformer_engine/binding.hpp"
#include "kernels/transformer_engine/companions.hpp"
#include "kernels/transformer_engine/find.hpp"
#include "kernels/transformer_engine/library.hpp"
#include "kernels/transformer_engine/versions.hpp"
#include "plan/backend_name.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

class TransformerEngineBackend : public Backend {
 public:
  TransformerEngineBackend(cuda_support::CudaDevice& device, ExecutorOptions options)
      : device_(device), options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return kBackend; }
  [[nodiscard]] const machine::Device& device() const override { return device_.info(); }
  [[nodiscard]] DeviceMemory& memory() override { return device_.memory(); }

  [[nodiscard]] Support supports(const Call& call) override {
    const TeBinding* binding = find(call);
    if (binding == nullptr) {
      return {false, fmt::format("TransformerEngine has no function for the op {}", call.c->op->name)};
    }
    if (Support support = takes_no_fault(call); !support.yes) {
      return support;
    }
    load(plan::version_of(call.c->backend));
    if (!library_.has_value()) {
      return {false, problem_};
    }
    std::string obstacle = binding->obstacle(context(), call);
    return {obstacle.empty(), std::move(obstacle)};
  }

  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override {
    return {find(call)->algorithm(context(), call)};
  }

 private:
  [[nodiscard]] const TeBinding* find(const Call& call) const {
    return static_cast<const TeBinding*>(find_binding(options_.bindings, kBackend, call.c->op->name));
  }

  [[nodiscard]] Context context() { return {*library_, &device_, device_.info()}; }

  void load(std::string_view version) {
    if (version_.has_value()) {
      if (*version_ != version) {
        throw core::InternalError(fmt::format("this process is for {}@{} but was given a case for {}@{}", kBackend,
                                              *version_, kBackend, version));
      }
      return;
    }
    version_ = version;
    const Choice choice = choose_library(options_.te_libs, version);
    if (!choice.problem.empty()) {
      problem_ = choice.problem;
      return;
    }
    Search search = find_library(choice.paths);
    if (!search.found.has_value()) {
      problem_ = std::move(search.problem);
      return;
    }
    // It compiles some kernels at run time but does not look for CUDA's headers everywhere that they may be.
    if (const auto toolkit = toolkit_with_headers(search.found->file); !toolkit.empty()) {
      setenv("CUDA_HOME", toolkit.c_str(), 0);
    }
    device_.use();
    try {
      library_.emplace(std::move(*search.found), options_.lib_dir);
    } catch (const core::EnvironmentError& error) {
      problem_ = error.what();
    }
  }

  cuda_support::CudaDevice& device_;
  ExecutorOptions options_;
  std::optional<Library> library_;
  std::optional<std::string> version_;  ///< that the cases name, empty for none; unset before the first case
  std::string problem_;                 ///< why the library is unavailable
};

}  // namespace

std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const ExecutorOptions& options) {
  return std::make_unique<TransformerEngineBackend>(device, options);
}

std::vector<std::pair<std::string, std::string>> versions_in_use(const ExecutorOptions& options) {
  std::vector<std::pair<std::string, std::string>> versions;
  if (options.te_libs.size() <= 1) {
    const Search search = find_library(options.te_libs);
    if (search.found.has_value()) {
      versions.emplace_back(kBackend, text_of(*search.found));
    }
    return versions;
  }
  for (const NamedLibrary& library : name_libraries(options.te_libs)) {
    const Search search = find_library(std::span(&library.path, 1));
    versions.emplace_back(library.backend, search.found.has_value() ? text_of(*search.found) : search.problem);
  }
  return versions;
}

}  // namespace numcheck::kernels::transformer_engine
