// A cuBLASLt that faults: after every n-th product of a process it writes to an unmapped address, on a stream that nobody
// waits for. Everything else goes to the real library. For --lib-dir.
//
//   NUMCHECK_FAULT_EVERY   n; unset: 5
//   NUMCHECK_FAULT_LOG     a file that gets one line for each fault
#include <atomic>
#include <cstdlib>

#include "kernels/cuda/illegal_address_kernel.hpp"
#include "tests/gpu/real_cublaslt.hpp"

namespace {

void fault() {
  numcheck::wrapping::log_line("fault");
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
  const cublasStatus_t status = numcheck::wrapping::real<decltype(&cublasLtMatmul)>("cublasLtMatmul")(
      handle, desc, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algo, workspace, workspace_bytes,
      stream);
  count_product();
  return status;
}

}  // extern "C"
