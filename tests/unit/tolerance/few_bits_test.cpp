// Sums of products of rounded operands: how many end in zeros.
#include "tolerance/few_bits.hpp"

#include <cstddef>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::tolerance {
namespace {

struct Problem {
  op::GemmParams p;
  std::vector<double> a, b;

  Problem(std::int64_t rows, std::int64_t k) : a(static_cast<std::size_t>(rows * k)), b(a.size()) {
    p.m = p.n = rows;
    p.k = k;
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<double>(normal(engine));
      b[i] = static_cast<double>(normal(engine));
    }
  }

  [[nodiscard]] std::array<double, 3> shares(core::Dtype format) const {
    const op::Operand first{.port = "a", .data = a.data(), .rows = p.m, .cols = p.k};
    const op::Operand second{.port = "b", .data = b.data(), .rows = p.k, .cols = p.n};
    return few_bit_shares(p, first, second, format, core::Rounding::nearest_even);
  }
};

TEST(FewBits, of_long_sums_few_end_in_zeros) {
  for (const core::Dtype format : {core::Dtype::tf32, core::Dtype::bf16}) {
    for (const double share : Problem(128, 256).shares(format)) {
      EXPECT_LT(share, 0.06);
      EXPECT_GT(share, 0) << "128 outputs do not show that there are none";
    }
  }
}

TEST(FewBits, of_single_products_many_do) {
  const std::array<double, 3> shares = Problem(128, 1).shares(core::Dtype::bf16);
  EXPECT_EQ(shares[0], 1) << "of 16 bits, the last two are often zero";
  EXPECT_LT(shares[2], 0.3);
}

TEST(FewBits, of_sparse_operands_and_powers_of_two_all_do) {
  Problem one(128, 128);
  for (std::size_t i = 0; i < one.a.size(); ++i) {
    one.a[i] = i % 128 == i / 128 ? 1 : 0;
  }
  const std::array<double, 3> shares = one.shares(core::Dtype::tf32);
  EXPECT_EQ(shares[0], 1);
  EXPECT_EQ(shares[1], 1) << "the outputs are TF32 numbers";
  EXPECT_LT(shares[2], 0.4);
}

TEST(FewBits, of_no_outputs_none_do) {
  EXPECT_EQ(Problem(0, 5).shares(core::Dtype::tf32)[0], 0);
}

}  // namespace
}  // namespace numcheck::tolerance
