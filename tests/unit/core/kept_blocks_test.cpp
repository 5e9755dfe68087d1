// Released blocks that are kept for later buffers.
#include "core/kept_blocks.hpp"

#include <cstdint>
#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/buffer.hpp"

namespace numcheck::core {
namespace {

constexpr std::size_t kMega = std::size_t{1} << 20;

TEST(KeptBlocks, are_used_again) {
  const KeptBlocks kept(64 * kMega);
  const void* first = nullptr;
  {
    const Buffer<std::uint8_t> buffer(16 * kMega);
    first = buffer.data();
  }
  EXPECT_GE(kept_bytes(), 16 * kMega);
  const Buffer<std::uint8_t> small(8 * kMega), large(32 * kMega);
  EXPECT_NE(small.data(), first) << "half of it would lie idle";
  EXPECT_NE(large.data(), first);
  const Buffer<std::uint8_t> next(15 * kMega);
  EXPECT_EQ(next.data(), first);
  EXPECT_EQ(kept_bytes(), 0U);
}

TEST(KeptBlocks, are_no_more_than_asked_for) {
  const KeptBlocks kept(40 * kMega);
  {
    const Buffer<std::uint8_t> a(16 * kMega), b(16 * kMega), c(16 * kMega);
  }
  EXPECT_LE(kept_bytes(), 40 * kMega);
  EXPECT_GE(kept_bytes(), 32 * kMega);
  {
    const Buffer<std::uint8_t> too_large(64 * kMega);
  }
  EXPECT_LE(kept_bytes(), 40 * kMega);
}

TEST(KeptBlocks, are_none_unless_asked_for) {
  {
    const Buffer<std::uint8_t> buffer(16 * kMega);
  }
  EXPECT_EQ(kept_bytes(), 0U);
  {
    const KeptBlocks kept(64 * kMega);
    {
      const Buffer<std::uint8_t> buffer(16 * kMega), little(kMega);
    }
    EXPECT_GE(kept_bytes(), 16 * kMega);
    EXPECT_LT(kept_bytes(), 20 * kMega) << "little ones are not";
  }
  EXPECT_EQ(kept_bytes(), 0U);
}

TEST(KeptBlocks, are_given_back_where_memory_is_short) {
  const KeptBlocks kept(64 * kMega);
  {
    const Buffer<std::uint8_t> buffer(16 * kMega);
  }
  EXPECT_GT(kept_bytes(), 0U);
  EXPECT_THROW(Buffer<std::uint8_t>(std::size_t{1} << 62), std::bad_alloc);
  EXPECT_EQ(kept_bytes(), 0U) << "before it is given up";
}

TEST(KeptBlocks, are_shared_by_threads) {
  const KeptBlocks kept(256 * kMega);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) {
        Buffer<std::uint8_t> buffer(static_cast<std::size_t>(4 + (i + t) % 5) * kMega);
        buffer[0] = buffer[buffer.size() - 1] = static_cast<std::uint8_t>(t);
        EXPECT_EQ(buffer[0], t);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_LE(kept_bytes(), 256 * kMega);
}

}  // namespace
}  // namespace numcheck::core
