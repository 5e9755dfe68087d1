#include "core/error.hpp"
#include "kernels/cuda_support/backend_set.hpp"

namespace numcheck::kernels {

std::unique_ptr<CudaBackends> open_cuda_device(int index, const ExecutorOptions&) {
  throw core::EnvironmentError(
      "cuda:" + std::to_string(index) +
      " was asked for, but te-numcheck was built without CUDA; rebuild with TE_NUMCHECK_CUDA=ON");
}

}  // namespace numcheck::kernels
