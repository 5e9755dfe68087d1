#include "kernels/loader/backend_set.hpp"

#include "core/error.hpp"

namespace numcheck::kernels::loader {

std::unique_ptr<CudaBackends> open_cuda_device(int index, const ExecutorOptions&) {
  throw core::EnvironmentError(
      "cuda:" + std::to_string(index) +
      " was requested, but te-numcheck was built without CUDA; rebuild with TE_NUMCHECK_CUDA=ON");
}

}  // namespace numcheck::kernels::loader
