// Which products FP32 arithmetic computes exactly, and that it does.
#include "reference/exact_product.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::reference {
namespace {

using Numbers = std::vector<double>;

bool is_exact(const Numbers& a, const Numbers& b) {
  return is_exact_in_fp32({.m = 1, .n = 1, .k = static_cast<std::int64_t>(a.size())}, a.data(), b.data());
}

TEST(ExactProduct, is_one_of_small_multiples_of_powers_of_two) {
  EXPECT_TRUE(is_exact({1, -2, 3, 0}, {4, 5, -6, 7}));
  EXPECT_TRUE(is_exact({0x1p-40, 0x1.8p-39}, {0x1p30, 0x1.4p33}));
  EXPECT_TRUE(is_exact({0, 0}, {1.1, 3}));
  EXPECT_TRUE(is_exact({}, {}));
  EXPECT_TRUE(is_exact({4096, 4095}, {2048, 2047})) << "2^24";
}

TEST(ExactProduct, is_none_of_sums_that_fp32_may_round) {
  EXPECT_FALSE(is_exact({4096, 4095}, {2048, 2049})) << "beyond 2^24";
  EXPECT_FALSE(is_exact({1, 0x1p-20}, {1, 0x1p-5}));
  EXPECT_FALSE(is_exact({1.1, 1}, {1, 1}));
  EXPECT_FALSE(is_exact({std::numeric_limits<double>::infinity(), 1}, {1, 1}));
  EXPECT_FALSE(is_exact({1, std::numeric_limits<double>::quiet_NaN()}, {1, 1}));
  EXPECT_FALSE(is_exact({0x1p-80, 0x1p-80}, {0x1p-80, 0x1p-80})) << "FP32 has no such products";
  EXPECT_FALSE(is_exact({0x1p70, 0x1p70}, {0x1p70, 0x1p70}));
  Numbers late(5000, 1);
  late.back() = 1 + 0x1p-23;
  EXPECT_FALSE(is_exact(late, late)) << "all are read";
}

TEST(ExactProduct, equals_that_of_doubles) {
  const ProductShape shape{.batch = 2, .m = 37, .n = 300, .k = 129};
  Numbers a(static_cast<std::size_t>(shape.batch * shape.m * shape.k)),
      b(static_cast<std::size_t>(shape.batch * shape.n * shape.k));
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = (static_cast<double>(i * 7919 % 31) - 15) * 0x1p-7;
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    b[i] = (static_cast<double>(i * 104729 % 41) - 20) * 0x1p9;
  }
  ASSERT_TRUE(is_exact_in_fp32(shape, a.data(), b.data()));
  for (const bool transposed : {false, true}) {
    Numbers expected(static_cast<std::size_t>(shape.batch * shape.m * shape.n)), got(expected.size());
    multiply(shape, {a.data(), transposed}, {b.data(), !transposed}, expected.data(), [](const Tile&) {});
    multiply_in_fp32(shape, {a.data(), transposed}, {b.data(), !transposed}, got.data(), [](const Tile&) {});
    EXPECT_EQ(got, expected);
  }
}

}  // namespace
}  // namespace numcheck::reference
