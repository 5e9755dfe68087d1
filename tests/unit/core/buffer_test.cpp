#include "core/buffer.hpp"

#include <cstdint>
#include <limits>
#include <new>

#include <gtest/gtest.h>

namespace numcheck::test {
namespace {

TEST(Buffer, is_aligned_and_writable_to_the_end) {
  for (const std::size_t size : {1, 7, 1000, 1 << 20}) {
    core::Buffer<double> buffer(size);
    ASSERT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
    for (double& value : buffer.span()) {
      value = 1;
    }
    EXPECT_EQ(buffer[size - 1], 1);
  }
}

TEST(Buffer, empty_holds_nothing) {
  const core::Buffer<double> none;
  const core::Buffer<double> zero(0);
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(zero.empty());
  EXPECT_EQ(zero.data(), nullptr);
}

TEST(Buffer, moves_without_copying) {
  core::Buffer<int> first(10);
  first[3] = 42;
  const int* address = first.data();
  core::Buffer<int> second(std::move(first));
  EXPECT_EQ(second.data(), address);
  core::Buffer<int> third(5);
  third = std::move(second);
  EXPECT_EQ(third.data(), address);
  EXPECT_EQ(third[3], 42);
}

TEST(Buffer, impossible_sizes_throw) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  for (const std::size_t size : {kMost, kMost / 2, kMost / 8, kMost / 8 + 2, std::size_t{1} << 61}) {
    EXPECT_THROW(core::Buffer<double>{size}, std::bad_alloc) << size;
  }
}

}  // namespace
}  // namespace numcheck::test
