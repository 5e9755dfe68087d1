#include <cstdint>

#include "kernels/cuda_support/compare_kernel.hpp"

namespace numcheck::kernels::cuda_support {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kWideBytes = sizeof(uint4);
/// A block's threads compare eight wide words each, if that does not take more blocks than keep a device busy.
constexpr std::size_t kBytesPerBlock = 8 * kThreads * kWideBytes;
constexpr std::size_t kMaxBlocks = 4096;

__global__ void compare_bytes(const unsigned char* a, const unsigned char* b, std::size_t bytes, unsigned* differs) {
  const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kThreads;
  const bool aligned = (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % kWideBytes == 0;
  const std::size_t wide = aligned ? bytes / kWideBytes : 0;
  unsigned different = 0;
  for (std::size_t i = thread; i < wide; i += stride) {
    const uint4 x = reinterpret_cast<const uint4*>(a)[i], y = reinterpret_cast<const uint4*>(b)[i];
    different |= (x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w);
  }
  for (std::size_t i = wide * kWideBytes + thread; i < bytes; i += stride) {
    different |= static_cast<unsigned>(a[i] ^ b[i]);
  }
  if (different != 0) {
    *differs = 1;
  }
}

}  // namespace

cudaError_t find_compare_kernel() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, compare_bytes);
}

cudaError_t launch_compare(const std::byte* a, const std::byte* b, std::size_t bytes, unsigned* differs,
                           cudaStream_t stream) {
  const std::size_t wanted = (bytes + kBytesPerBlock - 1) / kBytesPerBlock;
  const dim3 grid(static_cast<unsigned>(wanted < kMaxBlocks ? wanted : kMaxBlocks));
  const auto* first = reinterpret_cast<const unsigned char*>(a);
  const auto* second = reinterpret_cast<const unsigned char*>(b);
  // Its own status: cudaGetLastError would also return what a library has left behind.
  void* arguments[] = {&first, &second, &bytes, &differs};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&compare_bytes), grid, dim3(kThreads), arguments, 0, stream);
}

}  // namespace numcheck::kernels::cuda_support
