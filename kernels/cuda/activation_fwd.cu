#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/activation_grid.cuh"

namespace numcheck::kernels::cuda {
namespace {

template <Function function, bool gated, class In>
__global__ void __launch_bounds__(kActivationThreads) forward_kernel(ActivationLaunch p, Lines lines) {
  constexpr int kSize = kGroup<In>;
  const In* x = static_cast<const In*>(p.x.data);
  GroupStore store(p.out, p.scale);
  for (std::int64_t first = first_group(); first < lines.groups; first += group_stride()) {
    Lines::Place place[kInFlight];
    Group<kSize> a[kInFlight];
    Group<kSize> b[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      place[k] = lines.at<kSize>(first + k * kActivationThreads);
      const In* from = x + place[k].line * lines.length * (gated ? 2 : 1) + place[k].column;
      a[k] = load_group<kSize>(from, place[k].count, place[k].whole);
      if (gated) {
        b[k] = load_group<kSize>(from + lines.length, place[k].count, place[k].whole);
      }
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float value = activate<function>(a[k].at[i], p.clamp);
        a[k].at[i] = gated ? value * second_factor<function>(b[k].at[i], p.clamp) : value;
      }
      store(place[k].line * lines.length + place[k].column, a[k], place[k].count, place[k].whole);
    }
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
      forward_kernel<kFunction, true, In><<<blocks_of(lines), kActivationThreads, 0, stream>>>(launch, lines);
    } else {
      forward_kernel<kFunction, false, In><<<blocks_of(lines), kActivationThreads, 0, stream>>>(launch, lines);
    }
    return cudaGetLastError();
  });
}

}  // namespace

cudaError_t launch_activation_fwd(const ActivationLaunch& launch, cudaStream_t stream) {
  if (is_fp8(launch.x.storage)) {
    return cudaErrorNotSupported;
  }
  return visit_wide_storage(launch.x.storage,
                            [&](auto type) { return launch_typed<typename decltype(type)::type>(launch, stream); });
}

}  // namespace numcheck::kernels::cuda
