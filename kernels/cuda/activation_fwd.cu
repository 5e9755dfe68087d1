#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/activation_grid.cuh"

namespace numcheck::kernels::cuda {
namespace {

/// `whole`: every group is a Vec, so that no load hides behind a choice and all of them travel together.
template <Function function, bool gated, bool whole, class In>
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
      if (whole && place[k].count == 0) {
        continue;
      }
      a[k] = load_group<kSize>(from, place[k].count, whole || place[k].whole);
      if (gated) {
        b[k] = load_group<kSize>(from + lines.length, place[k].count, whole || place[k].whole);
      }
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      if (whole && place[k].count == 0) {
        continue;
      }
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float value = activate<function>(a[k].at[i], p.clamp);
        a[k].at[i] = gated ? value * second_factor<function>(b[k].at[i], p.clamp) : value;
      }
      store(place[k].line * lines.length + place[k].column, a[k], whole ? kSize : place[k].count,
            whole || place[k].whole);
    }
  }
  store.raise(p.amax);
}

template <Function function, bool gated, class In>
void run(const ActivationLaunch& launch, const Lines& lines, cudaStream_t stream) {
  if (lines.aligned && lines.length % kGroup<In> == 0) {
    forward_kernel<function, gated, true, In><<<blocks_of(lines), kActivationThreads, 0, stream>>>(launch, lines);
  } else {
    forward_kernel<function, gated, false, In><<<blocks_of(lines), kActivationThreads, 0, stream>>>(launch, lines);
  }
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
      run<kFunction, true, In>(launch, lines, stream);
    } else {
      run<kFunction, false, In>(launch, lines, stream);
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
