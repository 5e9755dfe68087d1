#include "kernels/transformer_engine/matmul_calls.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <cublasLt.h>
#include <fmt/format.h>

namespace numcheck::kernels::transformer_engine {
namespace {

thread_local MatmulCalls::Algorithms* noted = nullptr;

/// The function that code at `caller` would call by this name if this program did not export one: the next of all global
/// libraries, such as a preloaded one, or else of those that the caller's library was linked against.
template <class Function>
Function next_function(const char* name, const void* caller) {
  void* address = dlsym(RTLD_NEXT, name);
  if (Dl_info of_caller{}; address == nullptr && dladdr(caller, &of_caller) != 0) {
    if (void* library = dlopen(of_caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD); library != nullptr) {
      address = dlsym(library, name);
      dlclose(library);
    }
  }
  return reinterpret_cast<Function>(address);
}

void note(const cublasLtMatmulAlgo_t& algorithm, const void* caller) {
  const cublas_support::AlgorithmReader reader{
      next_function<decltype(&::cublasLtMatmulAlgoConfigGetAttribute)>("cublasLtMatmulAlgoConfigGetAttribute", caller),
      next_function<decltype(&::cublasLtMatmulAlgoCapGetAttribute)>("cublasLtMatmulAlgoCapGetAttribute", caller)};
  if (reader.config_get != nullptr && reader.capability_get != nullptr) {
    noted->push_back(cublas_support::describe_algorithm(reader, algorithm));
  }
}

}  // namespace

MatmulCalls::MatmulCalls(Algorithms& algorithms) : outer_(std::exchange(noted, &algorithms)) {
  algorithms.clear();
}

MatmulCalls::~MatmulCalls() {
  noted = outer_;
}

Shown shown_by(const MatmulCalls::Algorithms& algorithms) {
  Shown shown;
  for (const cublas_support::AlgorithmText& algorithm : algorithms) {
    shown.slices = std::max(shown.slices, algorithm.rounding.slices);
  }
  if (algorithms.size() == 1) {
    shown.details = {{"cublaslt", algorithms.front().label}};
    std::ranges::copy(algorithms.front().details, std::back_inserter(shown.details));
    return shown;
  }
  if (!algorithms.empty()) {
    shown.details = {{"cublaslt", cublas_support::labels_of(algorithms)}};
  }
  return shown;
}

Shown shown_by(const MatmulCalls::Algorithms& algorithms, const std::vector<bool>& multiplied) {
  Shown shown = shown_by(algorithms);
  if (std::cmp_equal(std::ranges::count(multiplied, true), algorithms.size())) {
    auto call = algorithms.begin();
    for (const bool has_call : multiplied) {
      shown.group_slices.push_back(has_call ? call++->rounding.slices : 1);
    }
  }
  return shown;
}

}  // namespace numcheck::kernels::transformer_engine

// Its name and parameters are those of cublasLt.h.
extern "C" __attribute__((visibility("default"))) cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
               cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
               const void* c, cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
               const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t bytes, cudaStream_t stream) {
  using namespace numcheck::kernels::transformer_engine;
  const void* caller = __builtin_return_address(0);
  const auto next = next_function<decltype(&::cublasLtMatmul)>("cublasLtMatmul", caller);
  if (next == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  if (noted != nullptr && algorithm != nullptr) {
    note(*algorithm, caller);
  }
  return next(handle, desc, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algorithm, workspace,
              bytes, stream);
}
