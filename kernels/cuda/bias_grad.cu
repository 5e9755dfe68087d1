#include <algorithm>

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/bias_grad_kernel.hpp"
#include "kernels/cuda/element_group.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kChains = 8;  // rows that a block sums in parallel: one per warp
constexpr int kThreads = kChains * kWarp;
constexpr std::int64_t kMinRows = 4 * kChains;  // per slab: fewer cost more in partial sums than they gain
constexpr std::int64_t kMaxSlabs = 512;
constexpr int kSlabChains = 32;  // slabs that are summed in parallel at the end

/// How rows are cut into slabs: a function of the number of rows alone.
struct Slabs {
  std::int64_t rows_each;
  std::int64_t count;
};

Slabs slabs_of(std::int64_t rows) {
  const std::int64_t even = (rows + kMaxSlabs - 1) / kMaxSlabs;
  const std::int64_t each = std::max(kMinRows, (even + kChains - 1) / kChains * kChains);
  return {each, std::max<std::int64_t>(1, (rows + each - 1) / each)};
}

/// Adds the chains of one group of columns, in order, and stores the sums of the slab.
template <int N>
__device__ void store_partial(const Group<N>& sums, Group<N> (*scratch)[kWarp], float* partial, int count) {
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  scratch[warp][lane] = sums;
  __syncthreads();
  if (warp == 0) {
    Group<N> total = sums;
    for (int chain = 1; chain < kChains; ++chain) {
      for (int i = 0; i < N; ++i) {
        total.at[i] += scratch[chain][lane].at[i];
      }
    }
    for (int i = 0; i < count; ++i) {
      partial[i] = total.at[i];
    }
  }
}

/// One block: 32 groups of columns of one slab. Warp w takes the rows w, w + 8, ... of the slab.
template <bool fused, Function function, class In>
__global__ void __launch_bounds__(kThreads) slab_kernel(BiasGradLaunch p, Slabs slabs, bool aligned) {
  constexpr int kSize = kGroup<In>;
  __shared__ Group<kSize> scratch[kChains][kWarp];
  const In* dy = static_cast<const In*>(p.dy.data);
  const In* x = static_cast<const In*>(p.x.data);
  GroupStore store(p.dx, p.scale);
  const bool stores = p.dx.data != nullptr;
  const std::int64_t column = (std::int64_t{blockIdx.x} * kWarp + threadIdx.x % kWarp) * kSize;
  const int count = static_cast<int>(max(std::int64_t{0}, min(std::int64_t{kSize}, p.hidden - column)));
  const bool whole = aligned && count == kSize;
  const std::int64_t slab = blockIdx.y;
  const std::int64_t end = min(p.rows, (slab + 1) * slabs.rows_each);
  Group<kSize> sums{};
  for (std::int64_t row = slab * slabs.rows_each + threadIdx.x / kWarp; row < end; row += kChains) {
    const std::int64_t at = row * p.hidden + column;
    Group<kSize> g = load_group<kSize>(dy + at, count, whole);
    if (fused) {
      const Group<kSize> input = load_group<kSize>(x + at, count, whole);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        g.at[i] = derivative<function>(input.at[i], {}) * g.at[i];
      }
    }
    if (stores) {
      store(at, g, count, whole);
    }
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      sums.at[i] += g.at[i];
    }
  }
  store_partial(sums, scratch, p.partial + slab * p.hidden + column, count);
  if (stores) {
    __syncthreads();
    store.raise(p.amax);
  }
}

/// One block: 32 columns. Thread row w takes the slabs w, w + 32, ...
template <class Out>
__global__ void __launch_bounds__(kSlabChains* kWarp)
    column_kernel(const float* partial, std::int64_t slabs, std::int64_t hidden, Out* dbias) {
  __shared__ float sums[kSlabChains][kWarp];
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + threadIdx.x;
  float sum = 0.0f;
  for (std::int64_t slab = threadIdx.y; slab < slabs && column < hidden; slab += kSlabChains) {
    sum += partial[slab * hidden + column];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < hidden) {
    for (int chain = 1; chain < kSlabChains; ++chain) {
      sum += sums[chain][threadIdx.x];
    }
    dbias[column] = from_float<Out>(sum);
  }
}

template <bool fused, Function function, class In>
cudaError_t launch_slabs(const BiasGradLaunch& launch, cudaStream_t stream) {
  constexpr int kSize = kGroup<In>;
  const Slabs slabs = slabs_of(launch.rows);
  const std::int64_t tiles = (launch.hidden + kSize * kWarp - 1) / (kSize * kWarp);
  const bool aligned = groups_aligned(launch.dy, kSize) && launch.hidden % kSize == 0 &&
                       (!fused || groups_aligned(launch.x, kSize)) &&
                       (launch.dx.data == nullptr || groups_aligned(launch.dx, kSize));
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(slabs.count));
  slab_kernel<fused, function, In><<<grid, kThreads, 0, stream>>>(launch, slabs, aligned);
  return cudaGetLastError();
}

template <class In>
cudaError_t launch_columns(const BiasGradLaunch& launch, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((launch.hidden + kWarp - 1) / kWarp);
  column_kernel<In><<<blocks, dim3(kWarp, kSlabChains), 0, stream>>>(
      launch.partial, slabs_of(launch.rows).count, launch.hidden, static_cast<In*>(launch.dbias.data));
  return cudaGetLastError();
}

template <class In>
cudaError_t launch_typed(const BiasGradLaunch& launch, cudaStream_t stream) {
  const cudaError_t status =
      launch.fused
          ? visit_function(launch.function,
                           [&](auto tag) { return launch_slabs<true, decltype(tag)::function, In>(launch, stream); })
          : launch_slabs<false, Function::relu, In>(launch, stream);
  return status == cudaSuccess ? launch_columns<In>(launch, stream) : status;
}

}  // namespace

std::size_t bias_grad_workspace(std::int64_t rows, std::int64_t hidden) {
  return static_cast<std::size_t>(slabs_of(rows).count) * static_cast<std::size_t>(hidden) * sizeof(float);
}

cudaError_t launch_bias_grad(const BiasGradLaunch& launch, cudaStream_t stream) {
  const bool same =
      launch.dy.storage == launch.dbias.storage && (!launch.fused || launch.dy.storage == launch.x.storage);
  if (is_fp8(launch.dy.storage) || !same) {
    return cudaErrorNotSupported;
  }
  return visit_wide_storage(launch.dy.storage,
                            [&](auto type) { return launch_typed<typename decltype(type)::type>(launch, stream); });
}

}  // namespace numcheck::kernels::cuda
