#include "kernels/cuda/swizzle_scales_kernel.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kTileLines = 128;
constexpr int kTileBlocks = 4;
constexpr int kGroup = 32;  // lines whose scales are kTileLines / kGroup words apart
constexpr int kMostBlocks = 1 << 16;

/// A block of 128 threads per tile, a line each: the four scales of a line are one word of the tile. Threads read neighbouring lines,
/// so that column-wise scales are read in whole segments, and row-wise ones, 4 bytes a line, from the second-level cache.
__global__ void __launch_bounds__(kTileLines)
    swizzle(SwizzleScalesLaunch p, std::int64_t tiles_across, std::int64_t tiles) {
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int in_tile = static_cast<int>(threadIdx.x);
    const std::int64_t line = tile / tiles_across * kTileLines + in_tile;
    const std::int64_t first = tile % tiles_across * kTileBlocks;
    std::uint32_t word = 0;
#pragma unroll
    for (int k = 0; k < kTileBlocks; ++k) {
      if (line < p.lines && first + k < p.blocks) {
        const std::int64_t at = p.lines_are_inner ? (first + k) * p.lines + line : line * p.blocks + first + k;
        word |= std::uint32_t{p.scales[at]} << (8 * k);
      }
    }
    auto* words = reinterpret_cast<std::uint32_t*>(p.swizzled) + tile * kTileLines;
    words[in_tile % kGroup * (kTileLines / kGroup) + in_tile / kGroup] = word;
  }
}

}  // namespace

cudaError_t launch_swizzle_scales(const SwizzleScalesLaunch& p, cudaStream_t stream) {
  const std::int64_t across = (p.blocks + kTileBlocks - 1) / kTileBlocks;
  const std::int64_t tiles = (p.lines + kTileLines - 1) / kTileLines * across;
  if (tiles > 0) {
    const int blocks = static_cast<int>(tiles < kMostBlocks ? tiles : kMostBlocks);
    swizzle<<<blocks, kTileLines, 0, stream>>>(p, across, tiles);
  }
  return cudaGetLastError();
}

}  // namespace numcheck::kernels::cuda
