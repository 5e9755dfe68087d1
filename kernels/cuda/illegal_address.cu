#include <cstdint>

#include "kernels/cuda/illegal_address_kernel.hpp"

namespace numcheck::kernels::cuda {
namespace {

/// The driver maps nothing into the first pages.
constexpr std::uintptr_t kUnmapped = 0x1000;

__global__ void write_to(std::uintptr_t address) {
  *reinterpret_cast<volatile int*>(address) = 1;
}

}  // namespace

cudaError_t launch_illegal_write(cudaStream_t stream) {
  write_to<<<1, 1, 0, stream>>>(kUnmapped);
  return cudaGetLastError();
}

}  // namespace numcheck::kernels::cuda
