#include "metric/repeats.hpp"

#include <cstddef>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::metric {
namespace {

TEST(Repeats, numbers_that_all_differ_have_no_copies) {
  std::vector<double> values(3000);
  std::mt19937_64 engine(1);
  for (double& y : values) {
    y = std::normal_distribution<double>()(engine);
  }
  EXPECT_EQ(repeats_of(values), 1);
  EXPECT_EQ(repeats_of({}), 1);
  EXPECT_EQ(repeats_of(std::vector<double>{0, 0, 0}), 1) << "zeros are not rounded";
}

TEST(Repeats, equal_rows_count_as_often_as_there_are_rows) {
  std::vector<double> row(256);
  std::mt19937_64 engine(2);
  for (double& y : row) {
    y = std::normal_distribution<double>()(engine);
  }
  std::vector<double> values;
  for (int r = 0; r < 512; ++r) {
    for (const double y : row) {
      values.push_back(r % 2 == 0 ? y : -y);  // is rounded alike
    }
  }
  EXPECT_NEAR(repeats_of(values), 512, 25) << "estimated from 4096 of them";
  values.resize(8 * row.size());
  EXPECT_NEAR(repeats_of(values), 8, 1e-9) << "all of them";
}

TEST(Repeats, last_bits_that_the_order_of_a_sum_decides_do_not_matter) {
  EXPECT_EQ(repeats_of(std::vector<double>{1.5, 1.5 + 0x1p-50}), 2);
}

}  // namespace
}  // namespace numcheck::metric
