// Rows that are taken several at a time have the very bits of rows taken one by one, on every instruction set.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/isa.hpp"
#include "norm_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::noise;
using testing::rows_of;

constexpr std::size_t kRows = 21;  // whole groups of 8, 4 and 2, and some that are left

class NormLanes : public ::testing::Test {
 protected:
  ~NormLanes() override { core::force_isa(initial_); }
  core::Isa initial_ = core::active_isa();
};

template <class T>
bool same_bits(const core::Buffer<T>& all, const core::Buffer<T>& row, std::size_t first) {
  return all.empty() ? row.empty() : std::memcmp(all.data() + first, row.data(), row.size() * sizeof(T)) == 0;
}

/// Expects of each row of a case what the case of this row alone has.
template <class P>
void expect_rows_alone(P p, const Inputs& inputs, const char* what) {
  const op::Values all = testing::evaluate(testing::problem_of(p), inputs);
  const op::Values values = testing::evaluate(testing::problem_of(p), inputs, true);
  P alone = p;
  alone.rows = 1;
  for (std::size_t i = 0; i < kRows; ++i) {
    Inputs row = inputs;
    const auto first = static_cast<std::ptrdiff_t>(i) * p.hidden;
    row["x"] = {inputs.at("x").begin() + first, inputs.at("x").begin() + first + p.hidden};
    const op::Values one = testing::evaluate(testing::problem_of(alone), row);
    const op::Values value = testing::evaluate(testing::problem_of(alone), row, true);
    for (std::size_t n = 0; n < one.outputs.size(); ++n) {
      EXPECT_TRUE(values.outputs[n].magnitude.empty());
      EXPECT_TRUE(same_bits(values.outputs[n].value, value.outputs[n].value, i * value.outputs[n].value.size()))
          << what << " " << values.outputs[n].port << " without errors, row " << i;
      const op::OutputValues &got = all.outputs[n], &expected = one.outputs[n];
      const std::size_t at = i * expected.value.size();
      EXPECT_TRUE(same_bits(got.value, expected.value, at)) << what << " " << got.port << ", row " << i;
      EXPECT_TRUE(same_bits(got.magnitude, expected.magnitude, at)) << what << " " << got.port << ", row " << i;
      EXPECT_TRUE(same_bits(got.deviation, expected.deviation, at)) << what << " " << got.port << ", row " << i;
      EXPECT_TRUE(same_bits(got.terms, expected.terms, at)) << what << " " << got.port << ", row " << i;
    }
  }
}

/// x of all rows: numbers of several sizes, and rows that are not tame.
std::vector<double> rows_with_specials(std::size_t hidden) {
  std::vector<double> x = noise(kRows * hidden, 3, 2, 0.3);
  const auto fill = [&](std::size_t row, double value) {
    std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(row * hidden), hidden, value);
  };
  fill(2, 0.1F);
  fill(9, 0);
  x[10 * hidden] = std::numeric_limits<double>::quiet_NaN();
  x[11 * hidden + hidden / 2] = std::numeric_limits<double>::infinity();
  fill(12, 0x1p-140);
  fill(13, 0x1p127);
  for (std::size_t j = 0; j < hidden; ++j) {
    x[14 * hidden + j] = 1 + 0x1p-23 * static_cast<double>(j % 3);  // all but equal
    x[15 * hidden + j] *= 0x1p-70;
    x[16 * hidden + j] *= 0x1p40;
  }
  return x;
}

template <class P>
void expect_same(std::size_t hidden, double epsilon, const std::function<void(P&)>& change = [](P&) {}) {
  P p = rows_of<P>(kRows, static_cast<std::int64_t>(hidden), epsilon);
  change(p);
  for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
    if (core::force_isa(isa) != isa) {
      continue;
    }
    const std::string what = fmt::format("{}, hidden {}, epsilon {}", core::isa_name(isa), hidden, epsilon);
    Inputs inputs = {{"x", noise(kRows * hidden, 1, 2, 0.3)}, {"gamma", noise(hidden, 5)}, {"beta", noise(hidden, 7)}};
    expect_rows_alone(p, inputs, what.c_str());
    inputs["gamma"][0] = 0;
    inputs["x"] = rows_with_specials(hidden);
    expect_rows_alone(p, inputs, what.c_str());
    inputs["gamma"][hidden - 1] = 0x1p-80;
    expect_rows_alone(p, inputs, what.c_str());
  }
}

TEST_F(NormLanes, of_layernorm_are_its_rows) {
  for (const std::size_t hidden : {1U, 2U, 7U, 8U, 64U, 100U, 529U}) {
    for (const double epsilon : {1e-5, 0.0, 1.0}) {
      expect_same<op::LayernormFwdParams>(hidden, epsilon);
    }
  }
  expect_same<op::LayernormFwdParams>(100, 1e-5, [](auto& p) { p.zero_centered_gamma = true; });
}

TEST_F(NormLanes, of_rmsnorm_are_its_rows) {
  for (const std::size_t hidden : {1U, 2U, 7U, 8U, 64U, 100U, 529U}) {
    for (const double epsilon : {1e-5, 0.0, 1.0}) {
      expect_same<op::RmsnormFwdParams>(hidden, epsilon);
    }
  }
  expect_same<op::RmsnormFwdParams>(100, 1e-5, [](auto& p) { p.zero_centered_gamma = true; });
  expect_same<op::RmsnormFwdParams>(100, 1e-5, [](auto& p) { p.gamma_order = "hf"; });
}

}  // namespace
}  // namespace numcheck::reference
