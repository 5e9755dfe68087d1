// The backward references of LayerNorm and RMSNorm by hand and by finite differences; the statistics that are derived.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "norm_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::derived;
using testing::dot;
using testing::evaluate;
using testing::Inputs;
using testing::noise;
using testing::output_named;
using testing::Problem;
using testing::problem_of;
using testing::rows_of;
using testing::terms_of;
using testing::value_of;
using Numbers = std::vector<double>;

const double kNan = std::nan("");

// xh is -1/2 1/2 in both rows; mean(g) is 7 and 3, mean(g xh) is 5/2 twice.
const Inputs kTwoRows = {{"x", {1, 3, 0, 4}},   {"mu", {2, 2}},    {"rsigma", {0.5, 0.25}},
                         {"dz", {1, 3, -1, 2}}, {"gamma", {2, 4}}, {"add", {10, 20, 30, 40}}};

TEST(LayernormBwd, by_hand) {
  const op::Values values = evaluate(problem_of(rows_of<op::LayernormBwdParams>(2, 2)), kTwoRows);
  ASSERT_EQ(values.outputs.size(), 3U);
  EXPECT_EQ(value_of(values, "dx"), (Numbers{-1.875, 1.875, -0.9375, 0.9375}));
  EXPECT_EQ(value_of(values, "dgamma"), (Numbers{0, 2.5}));
  EXPECT_EQ(value_of(values, "dbeta"), (Numbers{0, 5}));
  EXPECT_EQ(output_named(values, "dgamma").reduction, 2);
  // mean |g| is 7 and 5, mean |g xh| half of it.
  EXPECT_EQ(terms_of(values, "dx"), (Numbers{5.375, 10.375, 2.0625, 3.5625}));
  EXPECT_EQ(terms_of(values, "dgamma"), (Numbers{1, 2.5}));
  EXPECT_EQ(terms_of(values, "dbeta"), (Numbers{2, 5}));
  EXPECT_EQ(output_named(values, "dx").term_count, 2);
}

// xh is 1/2 3/2 and 0 1; mean(g xh) is 19/2 and 4.
TEST(RmsnormBwd, by_hand) {
  op::RmsnormBwdParams p = rows_of<op::RmsnormBwdParams>(2, 2);
  const op::Values values = evaluate(problem_of(p), kTwoRows);
  ASSERT_EQ(values.outputs.size(), 2U);
  const Numbers dx = {-1.375, -1.125, -0.5, 1};
  EXPECT_EQ(value_of(values, "dx"), dx);
  EXPECT_EQ(value_of(values, "dgamma"), (Numbers{0.5, 6.5}));
  EXPECT_EQ(terms_of(values, "dx"), (Numbers{3.375, 13.125, 0.5, 3}));
  p.add = true;
  EXPECT_EQ(terms_of(evaluate(problem_of(p), kTwoRows), "dx"), (Numbers{13.375, 33.125, 30.5, 43}));
  EXPECT_EQ(value_of(problem_of(p), kTwoRows, "dx"), (Numbers{10 - 1.375, 20 - 1.125, 29.5, 41}));
  EXPECT_EQ(value_of(problem_of(p), kTwoRows, "dgamma"), (Numbers{0.5, 6.5}));
}

TEST(NormBwd, zero_centred_gamma) {
  op::RmsnormBwdParams p = rows_of<op::RmsnormBwdParams>(2, 2);
  Inputs rows = kTwoRows;
  const Numbers dx = value_of(problem_of(p), rows, "dx");
  rows["gamma"] = {1, 3};
  p.zero_centered_gamma = true;
  EXPECT_EQ(value_of(problem_of(p), rows, "dx"), dx);
  op::LayernormBwdParams q = rows_of<op::LayernormBwdParams>(2, 2);
  q.zero_centered_gamma = true;
  EXPECT_EQ(value_of(problem_of(q), rows, "dx"), (Numbers{-1.875, 1.875, -0.9375, 0.9375}));
}

// 1 + 2^-8 is a tie of bf16, whose even neighbour is 1.
TEST(NormBwd, gamma_added_in_the_weights_format) {
  op::RmsnormBwdParams p = rows_of<op::RmsnormBwdParams>(2, 2);
  Inputs rows = kTwoRows;
  rows["gamma"] = {1, 1};
  const Numbers plain = value_of(problem_of(p), rows, "dx");
  rows["gamma"] = {1 + 0x1p-8, 1 + 0x1p-8};
  const Numbers exact = value_of(problem_of(p), rows, "dx");
  p.zero_centered_gamma = true;
  p.gamma_add = "weight";
  rows["gamma"] = {0x1p-8, 0x1p-8};
  const op::Values bf16 = evaluate(problem_of(p, "bf16"), rows);
  EXPECT_EQ(value_of(bf16, "dx"), plain);
  EXPECT_EQ(testing::copied(output_named(bf16, "dx").ideal), exact);
  EXPECT_EQ(output_named(bf16, "dx").ideal_note, "gamma + 1 is rounded to bf16");
  EXPECT_EQ(value_of(problem_of(p, "fp32"), rows, "dx"), exact);
}

TEST(NormBwd, empty_and_single_rows_and_columns) {
  const Inputs nothing = {{"x", {}}, {"mu", {}}, {"rsigma", {}}, {"dz", {}}, {"gamma", {1, 1}}};
  const op::Values none = evaluate(problem_of(rows_of<op::LayernormBwdParams>(0, 2)), nothing);
  EXPECT_TRUE(value_of(none, "dx").empty());
  EXPECT_EQ(value_of(none, "dgamma"), (Numbers{0, 0}));
  EXPECT_EQ(value_of(none, "dbeta"), (Numbers{0, 0}));
  EXPECT_EQ(value_of(problem_of(rows_of<op::RmsnormBwdParams>(0, 2)), nothing, "dgamma"), (Numbers{0, 0}));
  // One column: its mean is itself, nothing is left of the gradient.
  const Inputs column = {{"x", {5}}, {"mu", {5}}, {"rsigma", {316}}, {"dz", {3}}, {"gamma", {2}}};
  const op::Values one = evaluate(problem_of(rows_of<op::LayernormBwdParams>(1, 1)), column);
  EXPECT_EQ(value_of(one, "dx"), Numbers{0});
  EXPECT_EQ(value_of(one, "dgamma"), Numbers{0});
  EXPECT_EQ(value_of(one, "dbeta"), Numbers{3});
}

TEST(NormBwd, special_values_stay_in_their_row_of_dx) {
  Inputs rows = kTwoRows;
  for (const double special : {std::numeric_limits<double>::infinity(), kNan}) {
    rows["dz"] = {special, 3, -1, 2};
    const op::Values values = evaluate(problem_of(rows_of<op::LayernormBwdParams>(2, 2)), rows);
    const Numbers dx = value_of(values, "dx");
    // Differences of infinities depend on how the formula is written; a NaN stays one.
    EXPECT_EQ(std::isnan(dx[0]), std::isnan(special));
    EXPECT_EQ(testing::undetermined(output_named(values, "dx"), 0), std::isinf(special));
    EXPECT_EQ(dx[2], -0.9375);
    EXPECT_EQ(dx[3], 0.9375);
    EXPECT_FALSE(std::isfinite(value_of(values, "dbeta")[0]));
    EXPECT_EQ(value_of(values, "dbeta")[1], 5);
    EXPECT_EQ(value_of(values, "dgamma")[1], 2.5);
    const Numbers other = value_of(problem_of(rows_of<op::RmsnormBwdParams>(2, 2)), rows, "dx");
    EXPECT_EQ(std::isnan(other[0]), std::isnan(special));
    EXPECT_EQ(other[2], -0.5);
    EXPECT_EQ(other[3], 1);
  }
}

TEST(NormBwd, statistics_are_those_of_the_forward_pass) {
  const Inputs rows = {{"x", noise(60, 1, 3, 100)}, {"gamma", noise(12, 2)}, {"beta", noise(12, 3)}};
  const op::Values layernorm = evaluate(problem_of(rows_of<op::LayernormFwdParams>(5, 12)), rows);
  const op::Values rmsnorm = evaluate(problem_of(rows_of<op::RmsnormFwdParams>(5, 12)), rows);
  const Problem q = problem_of(rows_of<op::LayernormBwdParams>(5, 12));
  const Numbers draws = noise(5, 4);
  EXPECT_EQ(derived(q, rows, "mu", draws), value_of(layernorm, "mu"));
  EXPECT_EQ(derived(q, rows, "rsigma", draws), value_of(layernorm, "rsigma"));
  EXPECT_EQ(derived(problem_of(rows_of<op::RmsnormBwdParams>(5, 12)), rows, "rsigma", draws),
            value_of(rmsnorm, "rsigma"));
}

/// A forward op and its gradient on the same rows.
struct Pair {
  Problem forward;
  Problem backward;
  std::string_view name;
};

std::vector<Pair> pairs(std::int64_t rows, std::int64_t hidden, bool zero_centred) {
  auto lf = rows_of<op::LayernormFwdParams>(rows, hidden, 0.01);
  auto lb = rows_of<op::LayernormBwdParams>(rows, hidden, 0.01);
  auto rf = rows_of<op::RmsnormFwdParams>(rows, hidden, 0.01);
  auto rb = rows_of<op::RmsnormBwdParams>(rows, hidden, 0.01);
  lf.zero_centered_gamma = lb.zero_centered_gamma = zero_centred;
  rf.zero_centered_gamma = rb.zero_centered_gamma = zero_centred;
  rb.add = true;
  return {{problem_of(lf), problem_of(lb), "layernorm"}, {problem_of(rf), problem_of(rb), "rmsnorm"}};
}

/// Central difference of the loss in one element of one input.
template <class Loss>
double difference(Inputs at, std::string_view port, std::size_t i, const Loss& loss) {
  const double step = 0x1p-15;
  double& element = at.find(port)->second.at(i);
  const double centre = element;
  const auto across = [&](double h) {
    element = centre + h;
    const double above = loss(at);
    element = centre - h;
    return (above - loss(at)) / (2 * h);
  };
  return (4 * across(step) - across(2 * step)) / 3;  // Richardson: the error is O(h^4)
}

TEST(NormBwd, is_the_derivative_of_the_forward_pass) {
  constexpr std::size_t kRows = 3;
  constexpr std::size_t kColumns = 5;
  for (const bool zero_centred : {false, true}) {
    for (const Pair& pair : pairs(kRows, kColumns, zero_centred)) {
      Inputs at = {{"x", noise(kRows * kColumns, 4, 1, 0.5)},
                   {"dz", noise(kRows * kColumns, 5)},
                   {"gamma", noise(kColumns, 6)},
                   {"beta", noise(kColumns, 7)},
                   {"add", noise(kRows * kColumns, 8)}};
      const bool centred = pair.name == "layernorm";
      // The residual branch carries x itself, with the gradient `add`.
      const auto loss = [&](const Inputs& inputs) {
        return dot(inputs.at("dz"), value_of(pair.forward, inputs, "y")) +
               (centred ? 0 : dot(inputs.at("add"), inputs.at("x")));
      };
      const op::Values statistics = evaluate(pair.forward, at);
      at["rsigma"] = value_of(statistics, "rsigma");
      if (centred) {
        at["mu"] = value_of(statistics, "mu");
      }
      const op::Values gradient = evaluate(pair.backward, at);
      for (const auto& [port, of] : {std::pair{"x", "dx"}, {"gamma", "dgamma"}, {"beta", "dbeta"}}) {
        if (!centred && std::string_view(of) == "dbeta") {
          continue;
        }
        const Numbers values = value_of(gradient, of);
        for (std::size_t i = 0; i < values.size(); ++i) {
          EXPECT_NEAR(values[i], difference(at, port, i, loss), 2e-10) << pair.name << " " << of << " " << i;
        }
      }
    }
  }
}

TEST(NormBwd, bounds_are_positive_and_cover_fp32) {
  constexpr std::size_t kRows = 50;
  constexpr std::size_t kColumns = 64;
  Inputs at = {{"x", noise(kRows * kColumns, 1)}, {"dz", noise(kRows * kColumns, 2)}, {"gamma", noise(kColumns, 3)}};
  const Problem p = problem_of(rows_of<op::RmsnormBwdParams>(kRows, kColumns));
  at["rsigma"] = derived(p, at, "rsigma", Numbers(kRows));
  for (double& each : at["rsigma"]) {
    each = static_cast<double>(static_cast<float>(each));
  }
  const op::Values values = evaluate(p, at);
  const op::OutputValues& dgamma = output_named(values, "dgamma");
  std::vector<float> sums(kColumns);
  for (std::size_t i = 0; i < kRows * kColumns; ++i) {
    const auto rsigma = static_cast<float>(at["rsigma"][i / kColumns]);
    sums[i % kColumns] += static_cast<float>(at["dz"][i]) * (static_cast<float>(at["x"][i]) * rsigma);
  }
  double most = 0;
  for (std::size_t j = 0; j < kColumns; ++j) {
    most = std::max(
        most, std::fabs(static_cast<double>(sums[j]) - dgamma.value[j]) / static_cast<double>(dgamma.magnitude[j]));
  }
  EXPECT_LE(most, 1);
  EXPECT_GE(most, 0.01);
  for (const float bound : output_named(values, "dx").magnitude.span()) {
    EXPECT_TRUE(bound > 0 && std::isfinite(bound));
  }
}

}  // namespace
}  // namespace numcheck::reference
