#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/activation_grid.cuh"

namespace numcheck::kernels::cuda {
namespace {

/// dx of an op that is not gated.
template <Function function, class In>
__global__ void __launch_bounds__(kActivationThreads) backward_kernel(ActivationLaunch p, Lines lines) {
  constexpr int kSize = kGroup<In>;
  const In* x = static_cast<const In*>(p.x.data);
  const In* dy = static_cast<const In*>(p.dy.data);
  GroupStore store(p.out, p.scale);
  for (std::int64_t first = first_group(); first < lines.groups; first += group_stride()) {
    Lines::Place place[kInFlight];
    Group<kSize> at[kInFlight];
    Group<kSize> slope[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      place[k] = lines.at<kSize>(first + k * kActivationThreads);
      at[k] = load_group<kSize>(x + place[k].column, place[k].count, place[k].whole);
      slope[k] = load_group<kSize>(dy + place[k].column, place[k].count, place[k].whole);
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        at[k].at[i] = derivative<function>(at[k].at[i], p.clamp) * slope[k].at[i];
      }
      store(place[k].column, at[k], place[k].count, place[k].whole);
    }
  }
  store.raise(p.amax);
}

/// Both halves of dx of a gated op: with four streams of memory accesses, one group of each in flight is enough.
template <Function function, class In>
__global__ void __launch_bounds__(kActivationThreads) gated_kernel(ActivationLaunch p, Lines lines) {
  constexpr int kSize = kGroup<In>;
  const In* x = static_cast<const In*>(p.x.data);
  const In* dy = static_cast<const In*>(p.dy.data);
  GroupStore store(p.out, p.scale);
  const std::int64_t stride = std::int64_t{gridDim.x} * kActivationThreads;
  for (std::int64_t g = std::int64_t{blockIdx.x} * kActivationThreads + threadIdx.x; g < lines.groups; g += stride) {
    const Lines::Place place = lines.at<kSize>(g);
    const std::int64_t left = place.line * 2 * lines.length + place.column;
    const Group<kSize> slope =
        load_group<kSize>(dy + place.line * lines.length + place.column, place.count, place.whole);
    Group<kSize> a = load_group<kSize>(x + left, place.count, place.whole);
    Group<kSize> b = load_group<kSize>(x + left + lines.length, place.count, place.whole);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float gate = a.at[i];
      const float factor = second_factor<function>(b.at[i], p.clamp);
      a.at[i] = derivative<function>(gate, p.clamp) * slope.at[i] * factor;
      b.at[i] = follows<function>(b.at[i], p.clamp) ? slope.at[i] * activate<function>(gate, p.clamp) : 0.0f;
    }
    store(left, a, place.count, place.whole);
    store(left + lines.length, b, place.count, place.whole);
  }
  store.raise(p.amax);
}

template <class In>
cudaError_t launch_typed(const ActivationLaunch& launch, cudaStream_t stream) {
  const Lines lines = lines_of(launch, kGroup<In>);
  if (lines.groups == 0) {
    return cudaSuccess;
  }
  return visit_function(launch.function, [&](auto tag) {
    constexpr Function kFunction = decltype(tag)::function;
    if (launch.gated) {
      gated_kernel<kFunction, In><<<blocks_of(lines), kActivationThreads, 0, stream>>>(launch, lines);
    } else {
      backward_kernel<kFunction, In><<<blocks_of(lines), kActivationThreads, 0, stream>>>(launch, lines);
    }
    return cudaGetLastError();
  });
}

}  // namespace

cudaError_t launch_activation_bwd(const ActivationLaunch& launch, cudaStream_t stream) {
  if (is_fp8(launch.x.storage) || launch.x.storage != launch.dy.storage) {
    return cudaErrorNotSupported;
  }
  return visit_wide_storage(launch.x.storage,
                            [&](auto type) { return launch_typed<typename decltype(type)::type>(launch, stream); });
}

}  // namespace numcheck::kernels::cuda
