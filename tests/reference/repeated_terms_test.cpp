// Sums of few different terms: the variance that the assumption of independent errors misses.
#include "reference/repeated_terms.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "activation_problem.hpp"
#include "reference/activation_declared.hpp"

namespace numcheck::reference {
namespace {

using testing::bias_gradient;
using testing::value_of;
using tolerance::Tracked;

/// One term: dy times something of x, with its error.
struct Term {
  double x;
  double dy;
  Tracked g;
  float function = 0;  ///< of x; 0: another one for each x
};

/// The excess over what Sum<Tracked> says.
double excess_of(const std::vector<Term>& terms) {
  RepeatedTerms repeated;
  for (const Term& term : terms) {
    repeated.add(term.x, term.function == 0 ? static_cast<float>(term.x) : term.function, term.dy, term.g);
  }
  return repeated.excess_variance();
}

TEST(RepeatedTerms, nothing_and_one_term_have_no_excess) {
  EXPECT_EQ(excess_of({}), 0);
  EXPECT_EQ(excess_of({{1, 1, {3}}}), 0);
  EXPECT_EQ(excess_of({{1, 1, {3, 0.3, 0.01}}}), 0) << "one term has its own variance, whatever its bound";
}

// Four terms of one x with an error of at most 1/8 each: the group's is at most 1/2, its variance 1/12.
TEST(RepeatedTerms, errors_of_one_x_add_up) {
  const std::vector<Term> terms = {
      {2, 1, {1, 0.125, 0.001}}, {2, 1, {2, 0.125, 0.001}}, {2, 1, {3, 0.125, 0.001}}, {2, 1, {4, 0.125, 0.001}}};
  EXPECT_NEAR(excess_of(terms), 0.25 / 3 - 0.004, 1e-12);
}

// Different x with one FP32 f(x): the error of f is one, that of the product is each term's own.
TEST(RepeatedTerms, errors_of_one_function_value_add_up) {
  std::vector<Term> terms;
  for (int i = 0; i < 100; ++i) {
    terms.push_back({8 + 0.001 * i, 1, {1 + 0.01 * i, 0.125, 0.001}, 0.75F});
  }
  EXPECT_NEAR(excess_of(terms), 12.5 * 12.5 / 3 - 0.1, 1e-4);
  for (Term& term : terms) {
    term.g.b = 0x1p-24 * (term.g.y + 1e-6);
  }
  EXPECT_EQ(excess_of(terms), 0) << "rounded products of different dy err each for itself";
}

// The same error with both signs of dy cancels.
TEST(RepeatedTerms, signs_of_dy_cancel) {
  const std::vector<Term> terms = {
      {2, 1, {1, 0.125, 0.001}}, {2, -1, {-2, 0.125, 0.001}}, {2, 1, {3, 0.125, 0.001}}, {2, -1, {-4, 0.125, 0.001}}};
  EXPECT_EQ(excess_of(terms), 0);
}

TEST(RepeatedTerms, groups_are_independent) {
  std::vector<Term> terms;
  for (int i = 0; i < 8; ++i) {
    terms.push_back({static_cast<double>(i % 2), 1, {1.0 + i, 0.125, 0.001}});
  }
  EXPECT_NEAR(excess_of(terms), 2 * (0.25 / 3 - 0.004), 1e-12);
}

/// The excess of additions of which `squares` more than the independent ones go the same way.
double of_additions(double squares, double largest) {
  return squares * (0x1p-24 * largest) * (0x1p-24 * largest) / 3;
}

// Terms without an error of their own: only the additions' errors repeat.
TEST(RepeatedTerms, adding_the_same_value_errs_alike) {
  std::vector<Term> terms(100, {0, 1, {0.5}});
  EXPECT_DOUBLE_EQ(excess_of(terms), of_additions(100 * 100 - 100, 50));
  terms.insert(terms.begin() + 50, 1000, {0, 1, {0}});
  EXPECT_DOUBLE_EQ(excess_of(terms), of_additions(100 * 100 - 100, 50)) << "adding a zero does not err";
  terms.resize(50);
  terms.resize(100, {0, 1, {0.25}});
  EXPECT_DOUBLE_EQ(excess_of(terms), of_additions(2 * 50 * 50 - 100, 37.5)) << "two values, in whatever order";
}

TEST(RepeatedTerms, negatives_err_the_other_way) {
  std::vector<Term> terms(60, {0, 1, {0.5}});
  terms.resize(100, {0, 1, {-0.5}});
  EXPECT_DOUBLE_EQ(excess_of(terms), of_additions(20 * 20 - 100, 30));
  terms.resize(115, {0, 1, {-0.5}});
  EXPECT_EQ(excess_of(terms), 0) << "five more are no more than chance makes of so many";
}

TEST(RepeatedTerms, many_values_count_as_independent) {
  std::vector<Term> terms;
  for (int i = 0; i < 640; ++i) {
    terms.push_back({0, 1, {1.0 + i % 64}});
  }
  EXPECT_GT(excess_of(terms), 0);
  terms.push_back({0, 1, {0.5}});
  EXPECT_EQ(excess_of(terms), 0);
}

// More different x than are tracked: treated as independent, as in Sum. (All values differ, too.)
TEST(RepeatedTerms, many_groups_count_as_independent) {
  std::vector<Term> terms;
  for (int i = 0; i < 256; ++i) {
    terms.push_back({static_cast<double>(i % 64), 1, {1.0 + i, 0.125, 0.0001}});
  }
  EXPECT_NEAR(excess_of(terms), 64 * (0.25 / 3 - 0.0004), 1e-9);
  terms.push_back({64, 1, {1, 0.125, 0.0001}});
  EXPECT_EQ(excess_of(terms), 0);
}

TEST(Copies, are_several_equal_numbers) {
  const std::vector<double> same = {3, 3, 3}, other = {3, 3, 4};
  EXPECT_TRUE(all_copies(same.data(), 3));
  EXPECT_FALSE(all_copies(other.data(), 3));
  EXPECT_TRUE(all_copies(other.data(), 2));
  EXPECT_FALSE(all_copies(same.data(), 1));
  EXPECT_FALSE(all_copies(same.data(), 0));
  EXPECT_EQ(variance_of_copies({1, 3, 1}), 3);
  EXPECT_EQ(variance_of_copies({1, 3, 4}), 4);
}

/// Sum of FP32 numbers in order.
double chain(const std::vector<float>& terms) {
  float sum = 0;
  for (const float term : terms) {
    sum += term;
  }
  return static_cast<double>(sum);
}

// Two values of x in turn: over many dy the chain's error stays within a few predicted standard errors and its bound.
TEST(BiasGradRepeated, two_activations_in_turn) {
  constexpr std::size_t kRows = 2000;
  double squares = 0;
  int cases = 0;
  for (const char* fused : {"gelu", "silu", "qgelu"}) {
    const op::Activation f = op::activation_kind(fused).function;
    for (const float scale : {0.1F, 0.37F, 1.7F, 5.3F}) {
      std::vector<double> dy(kRows), x(kRows);
      std::vector<float> terms(kRows);
      for (std::size_t i = 0; i < kRows; ++i) {
        dy[i] = static_cast<double>(scale);
        x[i] = static_cast<double>(i % 2 == 0 ? 0.3F : 1.1F);
        terms[i] = declared::gradient<float>(f, x[i], dy[i], {});
      }
      const op::Values values = bias_gradient({.rows = kRows, .hidden = 1, .fused = fused}, dy, x);
      const double error = chain(terms) - value_of(values, 1)[0];
      EXPECT_LE(std::fabs(error), static_cast<double>(values.outputs[1].magnitude[0])) << fused << " " << scale;
      squares += std::pow(error / static_cast<double>(values.outputs[1].deviation[0]), 2);
      ++cases;
    }
  }
  EXPECT_LT(std::sqrt(squares / cases), 1.5);
  EXPECT_GT(std::sqrt(squares / cases), 0.1);
}

// Far out, where 1 - s has few bits left, all x of a neighbourhood give one derivative, with one error.
TEST(BiasGradRepeated, saturated_activations) {
  constexpr std::size_t kRows = 66;
  constexpr double kKappa = 2;  // see tracked_error_model
  double worst = 0;
  const op::Activation f = op::activation_kind("qgelu").function;
  for (unsigned trial = 0; trial < 80; ++trial) {
    std::mt19937 engine(trial);
    std::normal_distribution<float> near(7 + 0.03F * static_cast<float>(trial), 0x1p-11F);
    std::vector<double> dy(kRows), x(kRows);
    double sum = 0;  // without the additions' own errors
    for (std::size_t i = 0; i < kRows; ++i) {
      dy[i] = static_cast<double>(near(engine));
      x[i] = static_cast<double>(near(engine));
      sum += static_cast<double>(declared::gradient<float>(f, x[i], dy[i], {}));
    }
    const op::Values values = bias_gradient({.rows = kRows, .hidden = 1, .fused = "qgelu"}, dy, x);
    const double error = std::fabs(sum - value_of(values, 1)[0]);
    worst = std::max(worst, error / static_cast<double>(values.outputs[1].deviation[0]));
  }
  EXPECT_LT(worst, kKappa);
  EXPECT_GT(worst, 0.2);
}

// The order in which like signs come matters: the model must know how many terms there are (see widen_for_order).
TEST(BiasGradRepeated, sums_know_their_length) {
  const op::Values sums = bias_gradient({.rows = 4, .hidden = 1}, {1, 2, 3, 4});
  EXPECT_EQ(sums.outputs.back().reduction, 4);
  EXPECT_EQ(bias_gradient({.rows = 0, .hidden = 1}, {}).outputs.back().reduction, 1);
}

// dx of a tensor with a single value x has the same error everywhere, and its variance must say so.
TEST(BiasGradRepeated, one_activation_everywhere) {
  const std::vector<double> x(64, 0.7), dy(64, 1.3);
  std::vector<double> another = x;
  another[5] = 0.8;
  const op::Values alike = bias_gradient({.rows = 8, .hidden = 8, .fused = "gelu"}, dy, x);
  const op::Values mixed = bias_gradient({.rows = 8, .hidden = 8, .fused = "gelu"}, dy, another);
  const double bound = static_cast<double>(alike.outputs[0].magnitude[0]);
  EXPECT_NEAR(static_cast<double>(alike.outputs[0].deviation[0]), bound / std::sqrt(3.0), 1e-6 * bound);
  EXPECT_LT(mixed.outputs[0].deviation[0], alike.outputs[0].deviation[0]);
  EXPECT_EQ(mixed.outputs[0].magnitude[0], alike.outputs[0].magnitude[0]);
}

// A few values in random order, all positive: adding one has the same error whatever was added before.
TEST(BiasGradRepeated, few_positive_values_in_any_order) {
  constexpr std::size_t kRows = 4000;
  double squares = 0;
  constexpr unsigned kTrials = 30;
  for (unsigned trial = 0; trial < kTrials; ++trial) {
    std::mt19937 engine(trial);
    const float values[] = {0.1F + 0.01F * static_cast<float>(trial), 0.37F, 1.9F};
    std::vector<double> dy;
    std::vector<float> terms;
    for (std::size_t i = 0; i < kRows; ++i) {
      terms.push_back(values[engine() % 3]);
      dy.push_back(static_cast<double>(terms.back()));
    }
    const op::Values sums = bias_gradient({.rows = kRows, .hidden = 1}, dy);
    const double error = chain(terms) - value_of(sums)[0];
    squares += std::pow(error / static_cast<double>(sums.outputs[0].deviation[0]), 2);
  }
  EXPECT_LT(std::sqrt(squares / kTrials), 1.5);
  EXPECT_GT(std::sqrt(squares / kTrials), 0.1) << "a third of the square is for one value at its worst";
}

// Zeros among equal terms, as a relu or a mask leaves them.
TEST(BiasGradRepeated, zeros_among_equal_terms) {
  constexpr std::size_t kRows = 3000;
  for (const float given : {0.1F, 0.7F, 3.3F}) {
    std::vector<double> dy(kRows, static_cast<double>(given));
    std::vector<float> terms(kRows, given);
    for (std::size_t i = 0; i < kRows; i += 3) {
      dy[i] = 0;
      terms[i] = 0;
    }
    const op::Values values = bias_gradient({.rows = kRows, .hidden = 1}, dy);
    const double error = chain(terms) - value_of(values)[0];
    EXPECT_LE(std::fabs(error), 2 * static_cast<double>(values.outputs[0].deviation[0])) << given;
  }
}

}  // namespace
}  // namespace numcheck::reference
