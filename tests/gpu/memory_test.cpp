// Device memory against plain host memory: random fills, uploads and downloads, gathered or not, must act in their order.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/contract/device_block.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "kernels/loader/probe.hpp"

namespace numcheck::kernels::test {
namespace {

/// Above it, copies are not gathered (cuda_memory.cpp).
constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::size_t kBytes = 3 * kLarge;

class GpuMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    const loader::DriverState driver = loader::probe_driver();
    if (driver.kind != loader::DriverState::Kind::works) {
      GTEST_SKIP() << "no usable GPU: " << driver.sentence;
    }
  }
};

struct Range {
  std::size_t begin, bytes;
};

/// Mostly small, at any alignment, and often on top of another one; sometimes large.
Range random_range(std::mt19937& random) {
  const auto pick = [&random](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
  const std::size_t most = pick(50) == 0 ? kBytes : pick(3) == 0 ? 40000 : 300;
  const std::size_t bytes = pick(most);
  const std::size_t begin = pick(std::min<std::size_t>(kBytes - bytes, pick(1) == 0 ? 600 : kBytes));
  return pick(1) == 0 ? Range{begin / 16 * 16, bytes} : Range{begin, bytes};
}

struct Waiting {
  std::vector<std::byte> got, expected;
};

TEST_F(GpuMemory, calls_act_in_their_order) {
  cuda_support::CudaDevice device(0);
  cuda_support::CudaMemory& memory = device.memory();
  const DeviceBlock block = allocate_block(memory, kBytes);
  std::vector<std::byte> model(kBytes, std::byte{0x11});
  memory.fill(block.get(), 0x11, kBytes);
  std::mt19937 random(20261123);
  std::vector<Waiting> waiting;
  for (int step = 0; step < 20000; ++step) {
    const Range range = random_range(random);
    std::byte* const at = model.data() + range.begin;
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {
        const auto pattern = static_cast<std::uint8_t>(random());
        memory.fill(block.get() + range.begin, pattern, range.bytes);
        std::memset(at, pattern, range.bytes);
        break;
      }
      case 3:
      case 4: {
        std::vector<std::byte> bytes(range.bytes);
        std::ranges::generate(bytes, [&random] { return static_cast<std::byte>(random()); });
        memory.upload(block.get() + range.begin, bytes);
        std::ranges::copy(bytes, at);
        std::ranges::fill(bytes, std::byte{0});  // the caller's memory is no longer used
        break;
      }
      case 5:
      case 6: {
        waiting.push_back({std::vector<std::byte>(range.bytes), {at, at + range.bytes}});
        const DeviceRead read{waiting.back().got, block.get() + range.begin};
        memory.download_at_sync({&read, 1});
        break;
      }
      default:
        if (random() % 4 == 0) {
          memory.synchronize();
          for (const Waiting& read : waiting) {
            ASSERT_EQ(read.got, read.expected) << "step " << step;
          }
          waiting.clear();
        }
    }
  }
  std::vector<std::byte> got(kBytes);
  memory.download(got, block.get());
  EXPECT_EQ(got, model);
  memory.synchronize();
}

TEST_F(GpuMemory, copies_that_are_kept_are_compared_byte_by_byte) {
  cuda_support::CudaDevice device(0);
  cuda_support::CudaMemory& memory = device.memory();
  std::mt19937 random(20261128);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{15}, std::size_t{4096 + 7}, kBytes, 40 * kLarge + 3}) {
    const DeviceBlock block = allocate_block(memory, bytes);
    std::vector<std::byte> content(bytes);
    std::ranges::generate(content, [&random] { return static_cast<std::byte>(random()); });
    memory.upload(block.get(), content);
    const DeviceBlock copy(memory.keep(block.get(), bytes), ReleaseBlock{&memory});
    ASSERT_NE(copy, nullptr);
    EXPECT_TRUE(memory.is_same(block.get(), copy.get(), bytes)) << bytes;
    for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
      const auto other = static_cast<std::uint8_t>(std::to_integer<unsigned>(content[at]) ^ 0x10U);
      memory.fill(block.get() + at, other, 1);
      EXPECT_FALSE(memory.is_same(block.get(), copy.get(), bytes)) << bytes << " at " << at;
      memory.fill(block.get() + at, std::to_integer<std::uint8_t>(content[at]), 1);
      EXPECT_TRUE(memory.is_same(block.get(), copy.get(), bytes)) << bytes << " at " << at;
    }
  }
}

TEST_F(GpuMemory, a_copy_that_leaves_too_little_is_not_kept) {
  cuda_support::CudaDevice device(0);
  std::size_t available = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
  const DeviceBlock block = allocate_block(device.memory(), 1);
  EXPECT_EQ(device.memory().keep(block.get(), available / 2), nullptr);
}

TEST_F(GpuMemory, work_on_the_default_stream_is_ordered_like_the_rest_of_a_launch) {
  cuda_support::CudaDevice device(0);
  const DeviceBlock block = allocate_block(device.memory(), kBytes);
  constexpr int kRuns = 6;
  for (int round = 0; round < 20; ++round) {
    std::array<std::byte, kRuns> last{};
    for (int run = 0; run < kRuns; ++run) {
      device.memory().fill(block.get(), 0xFF, kBytes);
      static_cast<void>(device.timed([&] {
        for (int i = 0; i < 10; ++i) {
          static_cast<void>(cudaMemsetAsync(block.get(), run + 1, kBytes, cudaStreamLegacy));
        }
      }));
      const DeviceRead read{std::span(last).subspan(static_cast<std::size_t>(run), 1), block.get() + kBytes - 1};
      device.memory().download_at_sync({&read, 1});
    }
    device.memory().synchronize();
    for (int run = 0; run < kRuns; ++run) {
      ASSERT_EQ(std::to_integer<int>(last.at(static_cast<std::size_t>(run))), run + 1) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace numcheck::kernels::test
