// The references of the rotary embedding by hand, as a matrix and its transpose, and against 1200 bits.
#include "op/rope.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "big.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::derived;
using testing::evaluate;
using testing::Inputs;
using testing::noise;
using testing::output_named;
using testing::Problem;
using testing::value_of;
using Numbers = std::vector<double>;

Problem forward(const op::RopeParams& p) {
  return {&op::rope_fwd(), rope_fwd_reference(), op::to_params(p)};
}
Problem backward(const op::RopeParams& p) {
  return {&op::rope_bwd(), rope_bwd_reference(), op::to_params(p)};
}

/// The angles of a case, as the op gets them: FP32 numbers.
Numbers angles_of(const op::RopeParams& p) {
  Numbers angles = derived(forward(p), {}, "freqs", Numbers(static_cast<std::size_t>((p.start + p.seq) * p.rotated())));
  std::ranges::for_each(angles, [](double& angle) { angle = static_cast<double>(static_cast<float>(angle)); });
  return angles;
}

// Angles 0 and pi/2 (as a double): the rotation swaps the two, up to 6e-17.
TEST(Rope, halves_by_hand) {
  const double a = 0.5, b = 1.25;
  const Inputs at = {{"x", {1, 2, 3, 4}}, {"freqs", {a, b, a, b}}};
  const Numbers y = value_of(forward({.seq = 1, .dim = 4}), at, "y");
  EXPECT_EQ(y, (Numbers{std::cos(a) - 3 * std::sin(a), 2 * std::cos(b) - 4 * std::sin(b), 3 * std::cos(a) + std::sin(a),
                        4 * std::cos(b) + 2 * std::sin(b)}));
  const Numbers dx = value_of(backward({.seq = 1, .dim = 4}), {{"dy", {1, 2, 3, 4}}, {"freqs", {a, b, a, b}}}, "dx");
  EXPECT_EQ(dx, (Numbers{std::cos(a) + 3 * std::sin(a), 2 * std::cos(b) + 4 * std::sin(b),
                         3 * std::cos(a) - std::sin(a), 4 * std::cos(b) - 2 * std::sin(b)}));
  const op::Values values = evaluate(forward({.seq = 1, .dim = 4}), at);
  EXPECT_FLOAT_EQ(output_named(values, "y").terms[0], static_cast<float>(std::cos(a) + 3 * std::sin(a)));
}

TEST(Rope, neighbours_by_hand) {
  const double a = 0.5, b = 1.25;
  const Inputs at = {{"x", {1, 2, 3, 4}}, {"freqs", {a, a, b, b}}};
  EXPECT_EQ(value_of(forward({.seq = 1, .dim = 4, .interleaved = true}), at, "y"),
            (Numbers{std::cos(a) - 2 * std::sin(a), 2 * std::cos(a) + std::sin(a), 3 * std::cos(b) - 4 * std::sin(b),
                     4 * std::cos(b) + 3 * std::sin(b)}));
}

TEST(Rope, a_quarter_turn) {
  const double quarter = std::acos(0.0);
  const Numbers y = value_of(forward({.seq = 1, .dim = 2}), {{"x", {3, 5}}, {"freqs", {quarter, quarter}}}, "y");
  EXPECT_NEAR(y[0], -5, 1e-15);
  EXPECT_NEAR(y[1], 3, 1e-15);
}

TEST(Rope, other_channels_are_copied) {
  const op::RopeParams p{.seq = 1, .heads = 2, .dim = 4, .rotary = 2};
  const Inputs at = {{"x", {1, 2, 0.1, -7, 3, 4, std::nan(""), 0x1p-140}}, {"freqs", {0, 0}}};
  const op::Values values = evaluate(forward(p), at);
  const op::OutputValues& y = output_named(values, "y");
  EXPECT_EQ(y.value[0], 1);
  EXPECT_EQ(y.value[2], 0.1);
  EXPECT_EQ(y.value[3], -7);
  EXPECT_TRUE(std::isnan(y.value[6]));
  EXPECT_EQ(y.value[7], 0x1p-140);
  EXPECT_EQ(y.magnitude[3], 0) << "a copy does not err";
  EXPECT_GT(y.magnitude[0], 0);
}

// Two sequences of two tokens with one head each: which row of x has which angle.
TEST(Rope, rows_in_both_layouts) {
  const Numbers angles = {9, 9, 0.5, 0.5, 1.5, 1.5};  // `start` leaves the first one out
  const auto cosines = [&](const char* layout, std::int64_t heads) {
    const op::RopeParams p{.seq = 2, .batch = 2, .heads = heads, .dim = 2, .layout = layout, .start = 1};
    Numbers x;
    for (std::int64_t row = 0; row < 4 * heads; ++row) {
      x.insert(x.end(), {1, 0});
    }
    const Numbers y = value_of(forward(p), {{"x", x}, {"freqs", angles}, {"start_positions", {1, 1}}}, "y");
    Numbers first;
    for (std::size_t i = 0; i < y.size(); i += 2) {
      first.push_back(y[i]);
    }
    return first;
  };
  const double s = std::cos(0.5), t = std::cos(1.5);
  EXPECT_EQ(cosines("sbhd", 1), (Numbers{s, s, t, t}));
  EXPECT_EQ(cosines("bshd", 1), (Numbers{s, t, s, t}));
  EXPECT_EQ(cosines("sbhd", 2), (Numbers{s, s, s, s, t, t, t, t}));
  EXPECT_EQ(cosines("bshd", 2), (Numbers{s, s, t, t, s, s, t, t}));
}

TEST(Rope, no_tokens) {
  EXPECT_TRUE(value_of(forward({.seq = 0, .dim = 4}), {{"x", {}}, {"freqs", {}}}, "y").empty());
}

TEST(Rope, derived_inputs) {
  const op::RopeParams p{.seq = 2, .dim = 4, .start = 1, .position = 7, .base = 100};
  EXPECT_EQ(derived(forward(p), {}, "start_positions", {0}), Numbers{1});
  const Numbers halves = derived(forward(p), {}, "freqs", Numbers(12));
  const double tenth = std::pow(100, -0.5);
  EXPECT_EQ(halves, (Numbers{7, 7 * tenth, 7, 7 * tenth, 8, 8 * tenth, 8, 8 * tenth, 9, 9 * tenth, 9, 9 * tenth}));
  op::RopeParams q = p;
  q.interleaved = true;
  const Numbers neighbours = derived(forward(q), {}, "freqs", Numbers(12));
  EXPECT_EQ(Numbers(neighbours.begin(), neighbours.begin() + 4), (Numbers{7, 7, 7 * tenth, 7 * tenth}));
}

class RopePairs : public ::testing::TestWithParam<bool> {
 protected:
  op::RopeParams params_{
      .seq = 5, .batch = 2, .heads = 3, .dim = 16, .rotary = 12, .interleaved = GetParam(), .position = 1000};
  std::size_t elements_ = 5 * 2 * 3 * 16;
};
INSTANTIATE_TEST_SUITE_P(Pairs, RopePairs, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "neighbours" : "halves"; });

TEST_P(RopePairs, backward_undoes_forward) {
  const Numbers x = noise(elements_, 1);
  const Numbers angles = angles_of(params_);
  const Numbers y = value_of(forward(params_), {{"x", x}, {"freqs", angles}}, "y");
  const Numbers back = value_of(backward(params_), {{"dy", y}, {"freqs", angles}}, "dx");
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(back[i], x[i], 1e-15 * 4) << i;  // of a pair whose length is at most 4
  }
}

// dx of e_j in element i is y of e_i in element j, to the bit: also where the angles of a pair differ.
TEST_P(RopePairs, backward_is_the_transposed_matrix) {
  const op::RopeParams p{.seq = 1, .dim = 8, .rotary = 6, .interleaved = GetParam()};
  const Numbers angles = noise(6, 2);
  std::size_t off_diagonal = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    Numbers unit(8);
    unit[i] = 1;
    const Numbers column = value_of(forward(p), {{"x", unit}, {"freqs", angles}}, "y");
    for (std::size_t j = 0; j < 8; ++j) {
      Numbers other(8);
      other[j] = 1;
      EXPECT_EQ(value_of(backward(p), {{"dy", other}, {"freqs", angles}}, "dx")[i], column[j]) << i << " " << j;
      off_diagonal += i != j && column[j] != 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(off_diagonal, 6U);
}

TEST_P(RopePairs, adjoint_and_derivative) {
  const Numbers x = noise(elements_, 1), y = noise(elements_, 2), angles = angles_of(params_);
  const Numbers turned = value_of(forward(params_), {{"x", x}, {"freqs", angles}}, "y");
  const Numbers back = value_of(backward(params_), {{"dy", y}, {"freqs", angles}}, "dx");
  EXPECT_NEAR(testing::dot(turned, y), testing::dot(x, back), 1e-13);
  // The op is linear: a difference with a step of 1 has no error but rounding.
  Numbers above = x;
  for (const std::size_t i : {0U, 7U, 13U, 100U, 479U}) {
    above[i] = x[i] + 1;
    const double rise = testing::dot(value_of(forward(params_), {{"x", above}, {"freqs", angles}}, "y"), y);
    EXPECT_NEAR(rise - testing::dot(turned, y), back[i], 1e-13) << i;
    above[i] = x[i];
  }
}

TEST_P(RopePairs, bounds_cover_fp32) {
  const Numbers x = noise(elements_, 1), angles = angles_of(params_);
  const op::Values values = evaluate(forward(params_), {{"x", x}, {"freqs", angles}});
  const op::OutputValues& y = output_named(values, "y");
  double most = 0;
  for (std::size_t row = 0; row < elements_ / 16; ++row) {
    const std::size_t token = row / 6;
    for (std::size_t i = 0; i < 12; ++i) {
      const auto angle = static_cast<float>(angles[token * 12 + i]);
      const std::size_t partner = GetParam() ? i ^ 1U : (i + 6) % 12;
      const bool first = GetParam() ? i % 2 == 0 : i < 6;
      const float turned = static_cast<float>(x[row * 16 + partner]) * std::sin(angle);
      const float kept = static_cast<float>(x[row * 16 + i]) * std::cos(angle);
      const double error =
          std::fabs(static_cast<double>(first ? kept - turned : kept + turned) - y.value[row * 16 + i]);
      const auto bound = static_cast<double>(y.magnitude[row * 16 + i]);
      ASSERT_TRUE(bound > 0 && std::isfinite(bound));
      most = std::max(most, error / bound);
    }
  }
  EXPECT_LE(most, 1);
  EXPECT_GE(most, 0.1);
}

#ifdef NUMCHECK_HAVE_MPFR

// Angles up to 10^6: the sine of a large argument, and the angle itself before it becomes an FP32 number.
TEST_P(RopePairs, agrees_with_1200_bits) {
  using testing::Big;
  for (const std::int64_t position : {0, 1, 4095, 131071, 1'000'000}) {
    const op::RopeParams p{.seq = 1, .dim = 64, .interleaved = GetParam(), .position = position};
    const Numbers unrounded = derived(forward(p), {}, "freqs", Numbers(64));
    const Numbers angles = angles_of(p);
    const Numbers x = noise(64, 3);
    const Numbers y = value_of(forward(p), {{"x", x}, {"freqs", angles}}, "y");
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t pair = GetParam() ? i / 2 : i % 32;
      const Big exponent = Big(-2) * Big(static_cast<double>(pair)) / Big(64);
      const double angle = (Big(static_cast<double>(position)) * pow(Big(10000), exponent)).rounded();
      EXPECT_NEAR(unrounded[i], angle, 5e-16 * angle) << position << " " << i;
      const std::size_t partner = GetParam() ? i ^ 1U : (i + 32) % 64;
      const bool first = GetParam() ? i % 2 == 0 : i < 32;
      const Big turned = Big(x[partner]) * sin(Big(angles[i])) * Big(first ? -1 : 1);
      const double exact = (Big(x[i]) * cos(Big(angles[i])) + turned).rounded();
      EXPECT_NEAR(y[i], exact, 1e-15 * (std::fabs(x[i]) + std::fabs(x[partner]))) << position << " " << i;
    }
  }
}

#endif

}  // namespace
}  // namespace numcheck::reference
