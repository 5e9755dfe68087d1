// The random Hadamard transform: its definition, and what it leaves of a product.
#include "reference/hadamard.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"

namespace numcheck::reference {
namespace {

using Numbers = std::vector<double>;

Numbers bf16_noise(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  Numbers x(count);
  for (double& value : x) {
    value = core::round_to(normal(engine), core::Dtype::bf16);
  }
  return x;
}

TEST(Hadamard, is_the_matrix_with_signs) {
  const Numbers signs = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};
  const Numbers x = bf16_noise(16 * 50, 1);
  const Transformed transformed = hadamard_transformed(x);
  for (std::size_t first = 0; first < x.size(); first += 16) {
    for (unsigned k = 0; k < 16; ++k) {
      double sum = 0;
      for (unsigned j = 0; j < 16; ++j) {
        sum += (std::popcount(j & k) % 2 == 0 ? 1 : -1) * signs[j] * x[first + j];
      }
      EXPECT_EQ(transformed.values[first + k], core::round_to(sum / 4, core::Dtype::bf16));
    }
    EXPECT_EQ(transformed.uncertain[first / 16], 0);
  }
}

TEST(Hadamard, products_of_two_transformed_operands_are_those_of_the_operands) {
  std::mt19937 engine(2);
  Numbers a(16 * 100), b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {  // small enough for BF16 after the transform
    a[i] = static_cast<double>(engine() % 17) - 8;
    b[i] = static_cast<double>(engine() % 17) - 8;
  }
  const Transformed ya = hadamard_transformed(a), yb = hadamard_transformed(b);
  double direct = 0, transformed = 0, one_sided = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    direct += a[i] * b[i];
    transformed += ya.values[i] * yb.values[i];
    one_sided += ya.values[i] * b[i];
  }
  EXPECT_EQ(transformed, direct);
  EXPECT_NE(one_sided, direct);
}

TEST(Hadamard, what_the_order_of_sums_may_decide_is_marked) {
  Numbers x(48, 0);
  x[0] = 1;
  x[1] = 0x1p-8;   // the sum is halfway between two BF16 numbers,
  x[2] = 0x1p-40;  // but for what FP32 loses
  x[16] = 1;
  x[17] = 0x1p-8;
  x[32] = 1;
  x[33] = 0x1p-40;
  const Transformed transformed = hadamard_transformed(x);
  EXPECT_EQ(transformed.uncertain, (std::vector<std::uint8_t>{1, 0, 0}));
}

TEST(Hadamard, what_may_overflow_on_the_way_is_marked) {
  Numbers x(48, -1e38);  // as double sums the results are finite, or 0
  x[16] = 0x1p126;       // the largest sum is finite in any order
  std::fill(x.begin() + 17, x.begin() + 32, 0);
  x[32] = std::numeric_limits<double>::infinity();  // may meet the infinity of an overflow
  EXPECT_EQ(hadamard_transformed(x).uncertain, (std::vector<std::uint8_t>{1, 0, 1}));
}

TEST(Hadamard, infinities_and_nan) {
  Numbers x(32, 1);
  x[3] = std::numeric_limits<double>::infinity();
  x[20] = std::nan("");
  const Transformed transformed = hadamard_transformed(x);
  EXPECT_EQ(transformed.values[0], -x[3]) << "its sign is -";
  for (std::size_t k = 0; k < 16; ++k) {
    EXPECT_TRUE(std::isinf(transformed.values[k]));
    EXPECT_TRUE(std::isnan(transformed.values[16 + k]));
  }
}

}  // namespace
}  // namespace numcheck::reference
