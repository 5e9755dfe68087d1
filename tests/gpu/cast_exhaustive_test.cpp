// Casts on the device against those of the host: every FP32 number to BF16, FP16 and both FP8 formats, every BF16 and FP16 number
// to FP8. FP8 saturates; NaN is NaN, whichever.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/parallel.hpp"
#include "kernels/contract/device_block.hpp"
#include "kernels/cuda/quantize_kernel.hpp"
#include "kernels/cuda_support/check.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "kernels/loader/probe.hpp"
#include "tests/gpu/casts.hpp"

namespace numcheck::exhaustive {
namespace {

using core::Dtype;
using kernels::cuda::Tensor;
using kernels::cuda_support::check;

constexpr std::int64_t kChunk = std::int64_t{1} << 26;
constexpr std::int64_t kAll = std::int64_t{1} << 32;
constexpr std::int64_t kShort = 1 << 16;

std::size_t bytes_of(Dtype format) {
  return static_cast<std::size_t>(core::dtype_info(format).storage_bytes);
}

std::uint64_t code_at(std::span<const std::byte> codes, std::size_t at, std::size_t width) {
  std::uint64_t code = 0;
  std::memcpy(&code, codes.data() + at * width, width);
  return code;
}

/// How many codes differ, but for the bits of NaN; `first` is then one of their indices.
std::size_t differences(std::span<const std::byte> got, std::span<const std::byte> wanted, Dtype format,
                        std::size_t& first) {
  const std::size_t width = bytes_of(format);
  std::atomic<std::size_t> count = 0, seen = 0;
  constexpr std::size_t kPerTask = std::size_t{1} << 18;
  core::parallel_chunks(got.size() / width, kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    if (std::memcmp(got.data() + begin * width, wanted.data() + begin * width, (end - begin) * width) == 0) {
      return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t a = code_at(got, i, width), b = code_at(wanted, i, width);
      const bool both_nan = std::isnan(core::decode(a, format)) && std::isnan(core::decode(b, format));
      if (a != b && !both_nan) {
        ++count;
        seen = i;
      }
    }
  });
  first = seen;
  return count;
}

class ExhaustiveCasts : public ::testing::Test {
 protected:
  void SetUp() override {
    const kernels::loader::DriverState driver = kernels::loader::probe_driver();
    if (driver.kind != kernels::loader::DriverState::Kind::works) {
      GTEST_SKIP() << "no usable GPU: " << driver.sentence;
    }
  }
};

using Cast = std::function<cudaError_t(const float* x, const Tensor& y, std::int64_t count, cudaStream_t stream)>;

/// All FP32 numbers, a part at a time.
void compare_all(Dtype format, const Cast& cast) {
  kernels::cuda_support::CudaDevice device(0);
  const std::size_t width = bytes_of(format);
  const auto x = kernels::allocate_block(device.memory(), static_cast<std::size_t>(kChunk) * sizeof(float));
  const auto y = kernels::allocate_block(device.memory(), static_cast<std::size_t>(kChunk) * width);
  auto* const numbers = reinterpret_cast<float*>(x.get());
  const Tensor codes{y.get(), kernels::cuda::storage_of(format)};
  std::vector<std::byte> got(static_cast<std::size_t>(kChunk) * width), wanted(got.size());
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(kChunk));
  for (std::int64_t begin = 0; begin < kAll; begin += kChunk) {
    const auto first = static_cast<std::uint32_t>(begin);
    check(launch_numbers(numbers, first, kChunk, device.stream()), "launch_numbers");
    check(cast(numbers, codes, kChunk, device.stream()), "cast");
    check(cudaMemcpyAsync(got.data(), y.get(), got.size(), cudaMemcpyDeviceToHost, device.stream()), "copy");
    constexpr std::size_t kPerTask = std::size_t{1} << 18;
    core::parallel_chunks(bits.size(), kPerTask, [&](std::size_t, std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) {
        bits[i] = first + static_cast<std::uint32_t>(i);
      }
      core::narrow(std::as_bytes(std::span(bits).subspan(from, to - from)), format,
                   std::span(wanted).subspan(from * width, (to - from) * width),
                   core::is_fp8(format) ? core::Overflow::saturate : core::Overflow::ieee);
    });
    check(cudaStreamSynchronize(device.stream()), "cudaStreamSynchronize");
    std::size_t at = 0;
    const std::size_t count = differences(got, wanted, format, at);
    ASSERT_EQ(count, 0U) << core::dtype_info(format).name << " of the number with bits " << first + at << ": "
                         << code_at(got, at, width) << " instead of " << code_at(wanted, at, width);
  }
}

TEST_F(ExhaustiveCasts, of_single_elements) {
  for (const Dtype format : {Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::bf16, Dtype::fp16}) {
    compare_all(format, &launch_cast);
  }
}

TEST_F(ExhaustiveCasts, of_vectors) {
  for (const Dtype format : {Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::bf16, Dtype::fp16}) {
    compare_all(format, &launch_vector_cast);
  }
}

/// The kernel of `quantize`, with a scale of 1.
cudaError_t quantised(const Tensor& x, const Tensor& q, float* numbers, std::int64_t rows, std::int64_t cols,
                      cudaStream_t stream) {
  constexpr float kNumbers[] = {1, 0, 0};  // scale, amax, scale_inv
  check(cudaMemcpyAsync(numbers, kNumbers, sizeof kNumbers, cudaMemcpyHostToDevice, stream), "copy");
  return kernels::cuda::launch_quantize({.rows = rows,
                                         .cols = cols,
                                         .x = x,
                                         .q = q,
                                         .q_t = {},
                                         .scale = numbers,
                                         .amax = numbers + 1,
                                         .scale_inv = numbers + 2},
                                        stream);
}

TEST_F(ExhaustiveCasts, of_the_kernel_that_quantises) {
  kernels::cuda_support::CudaDevice device(0);
  const auto numbers = kernels::allocate_block(device.memory(), 3 * sizeof(float));
  constexpr std::int64_t kRows = 8192;
  for (const Dtype format : {Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    compare_all(format, [&](const float* x, const Tensor& y, std::int64_t count, cudaStream_t stream) {
      const Tensor wide{const_cast<float*>(x), kernels::cuda::Storage::fp32};
      return quantised(wide, y, reinterpret_cast<float*>(numbers.get()), kRows, count / kRows, stream);
    });
  }
}

TEST_F(ExhaustiveCasts, of_16_bit_inputs) {
  kernels::cuda_support::CudaDevice device(0);
  const auto numbers = kernels::allocate_block(device.memory(), 3 * sizeof(float));
  const auto x = kernels::allocate_block(device.memory(), 2 * kShort);
  const auto q = kernels::allocate_block(device.memory(), kShort);
  std::vector<std::uint16_t> bits(kShort);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint16_t>(i);
  }
  for (const Dtype from : {Dtype::bf16, Dtype::fp16}) {
    for (const Dtype format : {Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
      std::vector<std::byte> got(bits.size()), wanted(bits.size());
      std::vector<double> values(bits.size());
      core::decode(std::as_bytes(std::span(bits)), from, values);
      core::encode(values, format, wanted, core::Overflow::saturate);
      check(cudaMemcpyAsync(x.get(), bits.data(), 2 * bits.size(), cudaMemcpyHostToDevice, device.stream()), "copy");
      check(quantised({x.get(), kernels::cuda::storage_of(from)}, {q.get(), kernels::cuda::storage_of(format)},
                      reinterpret_cast<float*>(numbers.get()), 256, 256, device.stream()),
            "launch_quantize");
      check(cudaMemcpyAsync(got.data(), q.get(), got.size(), cudaMemcpyDeviceToHost, device.stream()), "copy");
      check(cudaStreamSynchronize(device.stream()), "cudaStreamSynchronize");
      std::size_t at = 0;
      EXPECT_EQ(differences(got, wanted, format, at), 0U) << "bits " << at;
    }
  }
}

}  // namespace
}  // namespace numcheck::exhaustive
