#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/activation_grid.cuh"

namespace numcheck::kernels::cuda {
namespace {

/// The function of a group, times the second factor of a gated kind.
template <Function function, bool gated, int N>
__device__ __forceinline__ Group<N> activated(Group<N> a, const Group<N>& b, const Clamp& clamp) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float value = activate<function>(a.at[i], clamp);
    a.at[i] = gated ? value * second_factor<function>(b.at[i], clamp) : value;
  }
  return a;
}

/// Every group is a Vec, so all loads are in flight together; values stay in the format of x until they are used.
/// kSame: y has the format of x. Eight resident blocks leave a thread 32 registers, which is then enough for the
/// functions of one argument; there is no loop, because blocks that come and go hide more of the memory latency.
template <Function function, bool gated, bool kSame, class In>
__global__ void __launch_bounds__(kActivationThreads, gated   ? 1
                                                      : kSame ? 8
                                                              : 6) forward_whole(ActivationLaunch p, Lines lines) {
  constexpr int kSize = kGroup<In>;
  using Packed = Vec<In, kSize>;
  const In* x = static_cast<const In*>(p.x.data);
  const std::int64_t first = first_group();
  Packed a[kInFlight];
  Packed b[kInFlight];
#pragma unroll
  for (int k = 0; k < kInFlight; ++k) {
    const std::int64_t group = first + k * kActivationThreads;
    if (group < lines.groups) {
      const In* from = x + (gated ? lines.gated_group(group) : group) * kSize;
      a[k] = Packed::load(from);
      if (gated) {
        b[k] = Packed::load(from + lines.length);
      }
    }
  }
  GroupStore store(p.out, kSame ? nullptr : p.scale);
#pragma unroll
  for (int k = 0; k < kInFlight; ++k) {
    const std::int64_t group = first + k * kActivationThreads;
    if (group < lines.groups) {
      const auto second = gated ? widened<kSize>(b[k]) : Group<kSize>{};
      const auto y = activated<function, gated>(widened<kSize>(a[k]), second, p.clamp);
      if constexpr (kSame) {
        rounded_vec<In>(y.at).store(static_cast<In*>(p.out.data) + group * kSize);
      } else {
        store(group * kSize, y, kSize, true);
      }
    }
  }
  if constexpr (!kSame) {
    store.raise(p.amax);
  }
}

/// Groups cut short by the end of their line, or not aligned for a single access.
template <Function function, bool gated, class In>
__global__ void __launch_bounds__(kActivationThreads) forward_ragged(ActivationLaunch p, Lines lines) {
  constexpr int kSize = kGroup<In>;
  const In* x = static_cast<const In*>(p.x.data);
  GroupStore store(p.out, p.scale);
  for (std::int64_t first = first_group(); first < lines.groups; first += group_stride()) {
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const Lines::Place place = lines.at<kSize>(first + k * kActivationThreads);
      const In* from = x + place.line * lines.length * (gated ? 2 : 1) + place.column;
      const auto a = load_group<kSize>(from, place.count, place.whole);
      const auto b = gated ? load_group<kSize>(from + lines.length, place.count, place.whole) : Group<kSize>{};
      store(place.line * lines.length + place.column, activated<function, gated>(a, b, p.clamp), place.count,
            place.whole);
    }
  }
  store.raise(p.amax);
}

template <Function function, bool gated, class In>
cudaError_t run(const ActivationLaunch& launch, const Lines& lines, cudaStream_t stream) {
  constexpr std::int64_t kMaxBlocks = 0x7fffffff;
  const std::int64_t blocks = (lines.groups + kGroupsPerBlock - 1) / kGroupsPerBlock;
  const bool same = launch.out.storage == launch.x.storage && launch.scale == nullptr;
  if (!lines.aligned || lines.length % kGroup<In> != 0 || blocks > kMaxBlocks) {
    forward_ragged<function, gated, In><<<blocks_of(lines), kActivationThreads, 0, stream>>>(launch, lines);
  } else if (same) {
    forward_whole<function, gated, true, In>
        <<<static_cast<unsigned>(blocks), kActivationThreads, 0, stream>>>(launch, lines);
  } else {
    forward_whole<function, gated, false, In>
        <<<static_cast<unsigned>(blocks), kActivationThreads, 0, stream>>>(launch, lines);
  }
  return cudaGetLastError();
}

template <class In>
cudaError_t launch_typed(const ActivationLaunch& launch, cudaStream_t stream) {
  const Lines lines = lines_of(launch, kGroup<In>);
  if (lines.groups == 0) {
    return cudaSuccess;
  }
  return visit_function(launch.function, [&](auto tag) {
    constexpr Function kFunction = decltype(tag)::function;
    return launch.gated ? run<kFunction, true, In>(launch, lines, stream)
                        : run<kFunction, false, In>(launch, lines, stream);
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
