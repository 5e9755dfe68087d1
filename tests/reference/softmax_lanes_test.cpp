// Rows that are taken several at a time have the numbers of rows taken one by one, on every instruction set.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lanes_expected.hpp"
#include "softmax_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::forward;
using testing::noise;
using testing::rows_of;

class SoftmaxLanes : public testing::EveryIsa {};

constexpr std::size_t kRows = 21;  // whole groups of 8, 4 and 2, and some that are left

void expect_rows_alone(op::SoftmaxFwdParams p, const std::vector<double>& x, const std::string& what) {
  const auto columns = static_cast<std::size_t>(p.sk);
  const op::OutputValues all = forward(p, {{"x", x}});
  p.sq = 1;
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(i * columns);
    const op::OutputValues one = forward(p, {{"x", {first, first + p.sk}}});
    testing::expect_alike(all, one, i * columns, columns, what + ", row " + std::to_string(i));
  }
}

TEST_F(SoftmaxLanes, are_rows) {
  for_each_isa([](const std::string& isa) {
    for (const std::size_t columns : {1U, 2U, 7U, 8U, 64U, 100U, 529U}) {
      for (const double scale : {1.0, 0.125, -2.0, 0.0}) {
        op::SoftmaxFwdParams p = rows_of(kRows, static_cast<std::int64_t>(columns));
        p.scale = scale;
        for (const double sigma : {1.0, 30.0, 400.0, 1e6}) {
          expect_rows_alone(p, noise(kRows * columns, 3, sigma), isa + ", " + std::to_string(columns) + " columns");
        }
      }
    }
  });
}

TEST_F(SoftmaxLanes, of_special_rows_are_rows) {
  constexpr std::size_t kColumns = 40;
  for_each_isa([](const std::string& isa) {
    std::vector<double> x = noise(kRows * kColumns, 5);
    const auto row = [&x](std::size_t i) { return x.begin() + static_cast<std::ptrdiff_t>(i * kColumns); };
    std::fill_n(row(1), kColumns, 0.0);
    *row(9) = std::nan("");
    *row(10) = std::numeric_limits<double>::infinity();
    *row(17) = -std::numeric_limits<double>::infinity();
    std::fill_n(row(18), kColumns, -std::numeric_limits<double>::infinity());
    std::fill_n(row(19), kColumns, -3e38);
    expect_rows_alone(rows_of(kRows, kColumns), x, isa);
  });
}

}  // namespace
}  // namespace numcheck::reference
