// A cuBLASLt that leaves out, repeats or misreads part of k: after every product, a kernel on its stream changes D
// accordingly. Everything else goes to the real library. For --lib-dir.
//
//   NUMCHECK_K_FAULT     a name from k_fault_plan.cpp; unset: nothing is changed
//   NUMCHECK_FAULT_LOG   a file that gets a line for each product: "planted missing_k_tail k 300 slices 2", "left alone:
//                        it has an epilogue"
//
// amax of an FP8 output stays that of the right product.
#include <cstdlib>
#include <string>

#include "tests/gpu/k_fault_plan.hpp"
#include "tests/gpu/real_cublaslt.hpp"

namespace {

using namespace numcheck::wrapping;

/// Why the fault could not be planted; empty if it was, which the log then says.
std::string plant(const std::string& name, const MatmulCall& call, const cublasLtMatmulAlgo_t* algorithm,
                  cudaStream_t stream) {
  const ReadProduct read = read_product(call);
  if (!read.obstacle.empty()) {
    return read.obstacle;
  }
  const std::int64_t slices = slices_of(algorithm);
  const PlannedFault planned = plan_fault(name, read.product, slices);
  if (!planned.obstacle.empty()) {
    return planned.obstacle;
  }
  if (const cudaError_t error = launch_k_fault(read.product, planned.fault, stream); error != cudaSuccess) {
    return cudaGetErrorString(error);
  }
  log_line(
      ("planted " + name + " k " + std::to_string(read.product.k()) + " slices " + std::to_string(slices)).c_str());
  return {};
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
  const char* fault = std::getenv("NUMCHECK_K_FAULT");
  if (status != CUBLAS_STATUS_SUCCESS || fault == nullptr) {
    return status;
  }
  const std::string obstacle = plant(fault, {desc, alpha, a, a_layout, b, b_layout, d, d_layout}, algo, stream);
  if (!obstacle.empty()) {
    log_line(("left alone: " + obstacle).c_str());
  }
  return status;
}

}  // extern "C"
