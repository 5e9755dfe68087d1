#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/gpu/real_cublaslt.hpp"

namespace numcheck::wrapping {
namespace {

void* real_library() {
  static void* const library = dlopen(REAL_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    stop(dlerror());
  }
  return library;
}

}  // namespace

void stop(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::abort();
}

void* real_address(const char* name) {
  void* const address = dlsym(real_library(), name);
  if (address == nullptr) {
    stop(dlerror());
  }
  return address;
}

void log_line(const char* line) {
  const char* path = std::getenv("NUMCHECK_FAULT_LOG");
  if (path == nullptr) {
    return;
  }
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fputs((std::string(line) + "\n").c_str(), file);
    std::fclose(file);
  }
}

}  // namespace numcheck::wrapping

using numcheck::wrapping::real;

extern "C" {

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
