// A cuBLASLt that multiplies nothing: it counts calls, and reads from an algorithm what the test wrote there.
#include <cstdint>
#include <cstring>

#include <cublasLt.h>

extern "C" {

int fake_cublaslt_calls = 0;
void* fake_cublaslt_output = nullptr;
cudaStream_t fake_cublaslt_stream = nullptr;

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                              const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t,
                              void* d, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, std::size_t,
                              cudaStream_t stream) {
  ++fake_cublaslt_calls;
  fake_cublaslt_output = d;
  fake_cublaslt_stream = stream;
  return CUBLAS_STATUS_ARCH_MISMATCH;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    std::size_t bytes, std::size_t* written) {
  std::uint64_t found = 0;
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_ID:
      found = algorithm->data[0];
      break;
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
      found = algorithm->data[1];
      break;
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
      found = algorithm->data[2];
      break;
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(value, &found, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t*, cublasLtMatmulAlgoCapAttributes_t, void*,
                                                 std::size_t, std::size_t*) {
  return CUBLAS_STATUS_INVALID_VALUE;
}

}  // extern "C"
