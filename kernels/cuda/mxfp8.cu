#include <algorithm>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/mxfp8_kernel.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlock = 32;  // values that share a scale
constexpr int kMantissaBits = 23;

template <class Code>
struct Largest;
template <>
struct Largest<__nv_fp8_e4m3> {
  static constexpr float value = 448.0f;
};
template <>
struct Largest<__nv_fp8_e5m2> {
  static constexpr float value = 57344.0f;
};

/// The smallest E8M0 number at or above `value` >= 0: as cvt.rp.satfinite.ue8m0x2.f32 where devices have it.
__device__ unsigned char e8m0_at_or_above(float value) {
  constexpr unsigned kLargest = 0xFE;       // 2^127
  constexpr unsigned kSmallest = 0x400000;  // 2^-127 as a subnormal FP32 number
  constexpr unsigned kMantissa = (1u << kMantissaBits) - 1;
  if (isinf(value)) {
    return kLargest;
  }
  const unsigned bits = __float_as_uint(value);
  const unsigned exponent = bits >> kMantissaBits;
  const unsigned mantissa = bits & kMantissa;
  const bool exact = mantissa == 0 || (exponent == 0 && mantissa <= kSmallest);
  return static_cast<unsigned char>(exact || exponent == kLargest ? exponent : exponent + 1);
}

/// 2^(127 - e), which is subnormal for e = 254.
__device__ float reciprocal_of(unsigned char e) {
  constexpr unsigned kLargest = 254;
  return e == kLargest ? __uint_as_float(1u << (kMantissaBits - 1)) : __uint_as_float((kLargest - e) << kMantissaBits);
}

/// One block per thread. `stride`: distance between its values, in elements.
template <class In, class Code>
__device__ void quantise(const In* values, Code* codes, unsigned char* scale, int count, std::int64_t stride) {
  float amax = 0.0f;
  for (int i = 0; i < count; ++i) {
    amax = fmaxf(amax, fabsf(to_float(values[i * stride])));  // drops NaN
  }
  constexpr float kReciprocal = 1.0f / Largest<Code>::value;
  const unsigned char e = e8m0_at_or_above(amax * kReciprocal);
  *scale = e;
  const float factor = reciprocal_of(e);
  for (int i = 0; i < count; ++i) {
    codes[i * stride] = from_float<Code>(to_float(values[i * stride]) * factor);
  }
}

template <class In, class Code>
__global__ void quantise_blocks(Mxfp8Launch p, std::int64_t blocks) {
  const auto* values = static_cast<const In*>(p.values.data);
  auto* codes = static_cast<Code*>(p.codes.data);
  auto* scales = static_cast<unsigned char*>(p.scales);
  const std::int64_t across = p.along_rows ? (p.cols + kBlock - 1) / kBlock : p.cols;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t block = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; block < blocks; block += step) {
    const std::int64_t row = block / across * (p.along_rows ? 1 : kBlock);
    const std::int64_t col = block % across * (p.along_rows ? kBlock : 1);
    const std::int64_t left = p.along_rows ? p.cols - col : p.rows - row;
    const int count = left < kBlock ? static_cast<int>(left) : kBlock;
    const std::int64_t first = row * p.cols + col;
    quantise(values + first, codes + first, scales + block, count, p.along_rows ? 1 : p.cols);
  }
}

template <class In>
cudaError_t launch_typed(const Mxfp8Launch& p, cudaStream_t stream) {
  const auto parts = [](std::int64_t size) { return (size + kBlock - 1) / kBlock; };
  const std::int64_t blocks = p.along_rows ? p.rows * parts(p.cols) : parts(p.rows) * p.cols;
  if (blocks == 0) {
    return cudaSuccess;
  }
  constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 20;
  const auto grid = static_cast<unsigned>(std::min((blocks + kThreads - 1) / kThreads, kMaxBlocks));
  if (p.codes.storage == Storage::fp8_e5m2) {
    quantise_blocks<In, __nv_fp8_e5m2><<<grid, kThreads, 0, stream>>>(p, blocks);
  } else {
    quantise_blocks<In, __nv_fp8_e4m3><<<grid, kThreads, 0, stream>>>(p, blocks);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_mxfp8(const Mxfp8Launch& launch, cudaStream_t stream) {
  if (is_fp8(launch.values.storage) || !is_fp8(launch.codes.storage)) {
    return cudaErrorNotSupported;
  }
  return visit_wide_storage(launch.values.storage,
                            [&](auto type) { return launch_typed<typename decltype(type)::type>(launch, stream); });
}

}  // namespace numcheck::kernels::cuda
