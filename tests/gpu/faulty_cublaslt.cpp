// A cuBLASLt that faults: after every n-th product of a process it writes to an unmapped address, on a stream that nobody
// waits for. Everything else goes to the real library. For --lib-dir.
//
//   NUMCHECK_FAULT_EVERY   n; unset: 5
//   NUMCHECK_FAULT_LOG     a file that gets one line for each fault
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <cublasLt.h>

#include "kernels/cuda/illegal_address_kernel.hpp"

namespace {

void* real_library() {
  static void* const library = dlopen(REAL_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }
  return library;
}

template <class Function>
Function real(const char* name) {
  void* const address = dlsym(real_library(), name);
  if (address == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }
  return reinterpret_cast<Function>(address);
}

void fault() {
  if (const char* path = std::getenv("NUMCHECK_FAULT_LOG")) {
    if (std::FILE* file = std::fopen(path, "a")) {
      std::fputs("fault\n", file);
      std::fclose(file);
    }
  }
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess) {
    numcheck::kernels::cuda::launch_illegal_write(stream);
  }
}

void count_product() {
  static std::atomic<int> products = 0;
  const char* text = std::getenv("NUMCHECK_FAULT_EVERY");
  const int every = text == nullptr ? 5 : std::atoi(text);
  if (every > 0 && ++products % every == 0) {
    fault();
  }
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  const cublasStatus_t status = real<decltype(&cublasLtMatmul)>("cublasLtMatmul")(
      handle, desc, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algo, workspace, workspace_bytes,
      stream);
  count_product();
  return status;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return real<decltype(&cublasLtCreate)>("cublasLtCreate")(handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return real<decltype(&cublasLtDestroy)>("cublasLtDestroy")(handle);
}
size_t cublasLtGetVersion() {
  return real<decltype(&cublasLtGetVersion)>("cublasLtGetVersion")();
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  return real<decltype(&cublasLtMatmulDescCreate)>("cublasLtMatmulDescCreate")(desc, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return real<decltype(&cublasLtMatmulDescDestroy)>("cublasLtMatmulDescDestroy")(desc);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  return real<decltype(&cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute")(desc, attribute, value,
                                                                                           bytes);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  return real<decltype(&cublasLtMatrixLayoutCreate)>("cublasLtMatrixLayoutCreate")(layout, type, rows, cols, ld);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return real<decltype(&cublasLtMatrixLayoutDestroy)>("cublasLtMatrixLayoutDestroy")(layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  return real<decltype(&cublasLtMatrixLayoutSetAttribute)>("cublasLtMatrixLayoutSetAttribute")(layout, attribute, value,
                                                                                               bytes);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return real<decltype(&cublasLtMatmulPreferenceCreate)>("cublasLtMatmulPreferenceCreate")(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return real<decltype(&cublasLtMatmulPreferenceDestroy)>("cublasLtMatmulPreferenceDestroy")(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  return real<decltype(&cublasLtMatmulPreferenceSetAttribute)>("cublasLtMatmulPreferenceSetAttribute")(
      preference, attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  return real<decltype(&cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic")(
      handle, desc, a, b, c, d, preference, wanted, results, found);
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    size_t bytes, size_t* written) {
  return real<decltype(&cublasLtMatmulAlgoConfigGetAttribute)>("cublasLtMatmulAlgoConfigGetAttribute")(
      algo, attribute, value, bytes, written);
}
cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute, void* value, size_t bytes,
                                                 size_t* written) {
  return real<decltype(&cublasLtMatmulAlgoCapGetAttribute)>("cublasLtMatmulAlgoCapGetAttribute")(algo, attribute, value,
                                                                                                 bytes, written);
}

}  // extern "C"
