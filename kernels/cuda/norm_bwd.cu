#include <algorithm>

#include "kernels/cuda/norm_bwd.cuh"
#include "kernels/cuda/residency.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr dim3 kColumnBlock(kColumnsPerBlock, kRowsAtOnce);

unsigned column_tiles(const NormBackward& p) {
  return static_cast<unsigned>((p.hidden + kColumnsPerBlock - 1) / kColumnsPerBlock);
}

/// The kernel that computes everything in one pass, or null if rows do not fit in registers.
template <class In, int N, bool kCentred, bool kPlain>
auto one_pass_kernel(int held) -> void (*)(NormBackward) {
  switch (held) {
    case 1:
      return &norm_backward<In, N, 1, kCentred, kPlain>;
    case 2:
      return &norm_backward<In, N, 2, kCentred, kPlain>;
    case 4:
      return &norm_backward<In, N, 4, kCentred, kPlain>;
    default:
      return nullptr;
  }
}

/// How the one-pass kernel is launched.
struct OnePass {
  void (*kernel)(NormBackward) = nullptr;
  dim3 block;
  unsigned blocks = 0;
  std::size_t shared = 0;
};

template <class In, int N, bool kCentred>
OnePass one_pass(const NormBackward& p) {
  const NormBlock block = norm_block((p.hidden + N - 1) / N, kBackwardLimits<In, kCentred>);
  OnePass pass;
  const bool full = std::int64_t{block.held} * block.threads * N == p.hidden;
  const bool plain = p.gamma_rule == GammaRule::plain && !p.adds && full;
  pass.kernel =
      plain ? one_pass_kernel<In, N, kCentred, true>(block.held) : one_pass_kernel<In, N, kCentred, false>(block.held);
  if (pass.kernel == nullptr) {
    return pass;
  }
  pass.block = dim3(static_cast<unsigned>(block.threads), static_cast<unsigned>(block.rows));
  pass.shared = block.rows == 1 ? 0 : sizeof(float) * static_cast<std::size_t>(block.rows * p.hidden);
  const std::int64_t most =
      resident_blocks(reinterpret_cast<const void*>(pass.kernel), block.threads * block.rows, pass.shared);
  pass.blocks = static_cast<unsigned>(std::min(most, (p.rows + block.rows - 1) / block.rows));
  return pass;
}

/// Row ranges of norm_backward_columns: enough blocks to fill the device, with at least 64 rows in each.
std::int64_t row_ranges(const NormBackward& p) {
  constexpr std::int64_t kBlocksPerMultiprocessor = 8;
  constexpr std::int64_t kMinRows = 64;
  const std::int64_t enough = kBlocksPerMultiprocessor * multiprocessors() / column_tiles(p) + 1;
  return std::min(enough, (p.rows + kMinRows - 1) / kMinRows);
}

template <bool kCentred>
std::size_t partial_bytes(std::int64_t blocks, std::int64_t hidden) {
  return sizeof(float) * static_cast<std::size_t>(blocks * hidden * (kCentred ? 2 : 1));
}

template <class In, bool kCentred>
cudaError_t finish(const NormBackward& p, std::int64_t blocks, cudaStream_t stream) {
  norm_backward_finish<In><<<dim3(column_tiles(p), kCentred ? 2 : 1), kColumnBlock, 0, stream>>>(p, blocks);
  return cudaGetLastError();
}

template <class In, int N, bool kCentred>
cudaError_t launch_two_passes(const NormBackward& p, cudaStream_t stream) {
  const auto ranges = static_cast<unsigned>(row_ranges(p));
  if (partial_bytes<kCentred>(ranges, p.hidden) > p.partial_bytes) {
    return cudaErrorInvalidValue;
  }
  if (p.rows > 0) {
    const std::int64_t groups = (p.hidden + N - 1) / N;
    const auto threads = static_cast<unsigned>(
        std::min<std::int64_t>(kBackwardLimits<In, kCentred>.threads, (groups + kWarp - 1) / kWarp * kWarp));
    norm_backward_rows<In, N, kCentred><<<static_cast<unsigned>(p.rows), threads, 0, stream>>>(p);
    norm_backward_columns<In, kCentred><<<dim3(column_tiles(p), ranges), kColumnBlock, 0, stream>>>(p);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
      return error;
    }
  }
  return finish<In, kCentred>(p, ranges, stream);
}

template <class In, bool kCentred>
cudaError_t launch_typed(const NormBackward& p, cudaStream_t stream) {
  constexpr int N = kPerAccess<In>;
  const bool aligned = p.hidden % N == 0 && groups_aligned(p.x, N) && groups_aligned(p.dz, N) &&
                       groups_aligned(p.gamma, N) && groups_aligned(p.add, N) && groups_aligned(p.dx, N);
  if (!aligned) {
    return launch_two_passes<In, 1, kCentred>(p, stream);
  }
  const OnePass pass = one_pass<In, N, kCentred>(p);
  if (pass.kernel == nullptr || pass.blocks == 0) {
    return launch_two_passes<In, N, kCentred>(p, stream);
  }
  if (partial_bytes<kCentred>(pass.blocks, p.hidden) > p.partial_bytes) {
    return cudaErrorInvalidValue;
  }
  pass.kernel<<<pass.blocks, pass.block, pass.shared, stream>>>(p);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
    return error;
  }
  return finish<In, kCentred>(p, pass.blocks, stream);
}

template <bool kCentred>
cudaError_t launch_backward(const NormBackward& p, cudaStream_t stream) {
  if (p.rows > 0x7fffffff || p.hidden > 0x3fffffff || p.hidden < 1) {
    return cudaErrorInvalidConfiguration;
  }
  return visit_wide_storage(
      p.x.storage, [&](auto type) { return launch_typed<typename decltype(type)::type, kCentred>(p, stream); });
}

template <bool kCentred>
std::size_t workspace(const NormBackward& p) {
  return visit_wide_storage(p.x.storage, [&](auto type) {
    using In = typename decltype(type)::type;
    // Whether one pass or two run depends on addresses too, so there is room for either.
    const std::int64_t blocks = std::max<std::int64_t>(one_pass<In, kPerAccess<In>, kCentred>(p).blocks, row_ranges(p));
    return partial_bytes<kCentred>(blocks, p.hidden);
  });
}

}  // namespace

std::size_t layernorm_bwd_workspace(const NormBackward& launch) {
  return workspace<true>(launch);
}

std::size_t rmsnorm_bwd_workspace(const NormBackward& launch) {
  return workspace<false>(launch);
}

cudaError_t launch_layernorm_bwd(const NormBackward& launch, cudaStream_t stream) {
  return launch_backward<true>(launch, stream);
}

cudaError_t launch_rmsnorm_bwd(const NormBackward& launch, cudaStream_t stream) {
  return launch_backward<false>(launch, stream);
}

}  // namespace numcheck::kernels::cuda
