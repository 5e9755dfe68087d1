// Gradients of attention from the o and lse of a forward pass: the reference's own, or a device's.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::Problem;
using testing::value_of;
using Numbers = std::vector<double>;

/// One query and two keys, whose scores are 0 and log 3: the weights are 1/4 and 3/4, o = 4 and lse = log 4.
op::AttentionParams two_keys(const char* statistics) {
  op::AttentionParams p;
  p.sq = 1;
  p.sk = 2;
  p.d = 1;
  p.scale = 2;
  p.statistics = statistics;
  return p;
}

const Inputs& inputs() {
  static const Inputs all = {{"q", {0.5}}, {"k", {0, std::log(3)}}, {"v", {1, 5}}, {"do", {10}}};
  return all;
}

Problem backward(const op::AttentionParams& p) {
  return {&op::attention_bwd(), attention_bwd_reference(), op::to_params(p)};
}

/// The gradients for these o and lse.
op::Values given(const op::AttentionParams& p, const Numbers& o, const Numbers& lse) {
  const Problem problem = backward(p);
  op::ReferenceRequest request{&problem.params, testing::operands_of(problem, inputs()), {}, false};
  request.inputs.push_back({.port = "o", .data = o.data()});
  request.inputs.push_back({.port = "lse", .data = lse.data()});
  return problem.reference.values(request);
}

TEST(AttentionOwnForward, leaves_o_and_lse_beside_the_gradients) {
  const op::Values values = testing::evaluate(backward(two_keys("device")), inputs());
  EXPECT_DOUBLE_EQ(value_of(values, "o")[0], 4);
  EXPECT_DOUBLE_EQ(value_of(values, "lse")[0], std::log(4));
  EXPECT_FALSE(testing::output_named(values, "o").row_facts.empty()) << "o is judged";
  // ds = p (dp - D): 1/4 (10 - 40) and 3/4 (50 - 40)
  EXPECT_NEAR(value_of(values, "dk")[0], 2 * -7.5 * 0.5, 1e-13);
  EXPECT_NEAR(value_of(values, "dk")[1], 2 * 7.5 * 0.5, 1e-13);
  EXPECT_NEAR(value_of(values, "dv")[0], 2.5, 1e-14);
  EXPECT_NEAR(value_of(values, "dv")[1], 7.5, 1e-14);
  EXPECT_NEAR(value_of(values, "dq")[0], 2 * 7.5 * std::log(3), 1e-13);
}

TEST(AttentionOwnForward, gradients_take_what_a_device_left) {
  // With lse = log 8 the weights are half as large: 1/8 and 3/8. With o = 2, D = 20.
  const op::Values values = given(two_keys("device"), {2}, {std::log(8)});
  ASSERT_EQ(values.outputs.size(), 3U) << "dq, dk, dv";
  EXPECT_NEAR(value_of(values, "dv")[0], 1.25, 1e-14);
  EXPECT_NEAR(value_of(values, "dv")[1], 3.75, 1e-14);
  // ds: 1/8 (10 - 20) and 3/8 (50 - 20)
  EXPECT_NEAR(value_of(values, "dk")[0], 2 * -1.25 * 0.5, 1e-13);
  EXPECT_NEAR(value_of(values, "dk")[1], 2 * 11.25 * 0.5, 1e-13);
  EXPECT_NEAR(value_of(values, "dq")[0], 2 * 11.25 * std::log(3), 1e-13);
  EXPECT_FALSE(testing::output_named(values, "dq").row_facts.empty()) << "the gradients are judged";
}

TEST(AttentionOwnForward, is_part_of_the_case_only_with_statistics_of_the_device) {
  const auto passed_on = [](const char* statistics) {
    return std::ranges::count_if(backward(two_keys(statistics)).ports(), [](const op::Port& port) {
      return port.passed_on && port.role == op::Role::output && (port.name == "o" || port.name == "lse");
    });
  };
  EXPECT_EQ(passed_on("reference"), 0);
  EXPECT_EQ(passed_on("device"), 2);
  EXPECT_TRUE(op::passes_of(op::attention_bwd(), op::to_params(two_keys("reference"))).empty());
  const std::vector<op::Pass> passes = op::passes_of(op::attention_bwd(), op::to_params(two_keys("device")));
  ASSERT_EQ(passes.size(), 2U);
  EXPECT_EQ(passes[0].op, &op::attention_fwd());
  EXPECT_EQ(passes[1].op, &op::attention_bwd());
  EXPECT_EQ(passes[1].params, op::to_params(two_keys("reference")));
}

TEST(AttentionOwnForward, is_refused_where_it_makes_no_sense) {
  const op::Params device = op::to_params(two_keys("device"));
  EXPECT_TRUE(op::attention_bwd().check(device, *op::find_mode("bf16")).empty());
  EXPECT_EQ(
      op::attention_bwd().check(device, *op::find_mode("fp8_hybrid")),
      std::vector<std::string>{"attention_bwd: mode fp8_hybrid has no statistics of the device: set statistics to "
                               "reference"});
  EXPECT_EQ(
      op::attention_fwd().check(device, *op::find_mode("bf16")),
      std::vector<std::string>{"attention_fwd: statistics are what attention_bwd reads; leave the parameter out"});
}

}  // namespace
}  // namespace numcheck::reference
