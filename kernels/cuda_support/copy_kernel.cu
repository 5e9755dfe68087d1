#include "kernels/cuda_support/copy_kernel.hpp"

namespace numcheck::kernels::cuda_support {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWideBytes = sizeof(uint4);
/// Enough blocks to keep the bus busy; a block's threads then copy four wide words each.
constexpr unsigned kBytesPerBlock = 4 * kThreads * kWideBytes;
constexpr unsigned kMaxBlocks = 32;

/// Grid: x = parts of a piece, y = pieces.
__global__ void copy_pieces(CopyPieces pieces) {
  const CopyPiece p = pieces.piece[blockIdx.y];
  const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
  const unsigned stride = gridDim.x * kThreads;
  const bool aligned =
      (reinterpret_cast<std::uintptr_t>(p.to) | reinterpret_cast<std::uintptr_t>(p.from)) % kWideBytes == 0;
  const unsigned wide = aligned ? p.bytes / kWideBytes : 0;
  const unsigned word = 0x01010101u * p.pattern;
  for (unsigned i = thread; i < wide; i += stride) {
    reinterpret_cast<uint4*>(p.to)[i] =
        p.from == nullptr ? make_uint4(word, word, word, word) : reinterpret_cast<const uint4*>(p.from)[i];
  }
  for (unsigned i = wide * kWideBytes + thread; i < p.bytes; i += stride) {
    p.to[i] = p.from == nullptr ? p.pattern : p.from[i];
  }
}

}  // namespace

cudaError_t find_copy_kernel() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, copy_pieces);
}

cudaError_t launch_copies(const CopyPieces& pieces, cudaStream_t stream) {
  unsigned largest = 1;
  for (int i = 0; i < pieces.count; ++i) {
    largest = pieces.piece[i].bytes > largest ? pieces.piece[i].bytes : largest;
  }
  const unsigned wanted = (largest + kBytesPerBlock - 1) / kBytesPerBlock;
  const dim3 grid(wanted < kMaxBlocks ? wanted : kMaxBlocks, static_cast<unsigned>(pieces.count));
  // Its own status: cudaGetLastError would also return what a library has left behind.
  void* arguments[] = {const_cast<CopyPieces*>(&pieces)};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&copy_pieces), grid, dim3(kThreads), arguments, 0, stream);
}

}  // namespace numcheck::kernels::cuda_support
