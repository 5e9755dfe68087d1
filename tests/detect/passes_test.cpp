// Gradients of attention from the o and lse of the device's own forward pass: each pass answers for its own errors.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/distribution.hpp"
#include "mini_run.hpp"
#include "op/attention_bwd.hpp"

namespace numcheck::detect {
namespace {

using Names = std::vector<std::string>;

verdict::RunResult run(std::string_view mode, const std::string& fault) {
  op::AttentionParams p;
  p.batches = 2;
  p.heads = 4;
  p.kv_heads = 2;
  p.sq = 40;
  p.sk = 100;
  p.d = 32;
  p.mask = "causal_bottom_right";
  p.statistics = "device";
  plan::Case c;
  c.op = &op::attention_bwd();
  c.mode = op::find_mode(mode);
  c.params = op::to_params(p);
  c.backend = "sim";
  c.inputs.common = data::make_distribution("normal");
  c.seed = 3;
  plan::identify(c);
  return MiniRunner().run(c, 90, {.inject = fault}).runs.at(0);
}

/// Outputs of which a gate fails.
Names failing(const verdict::RunResult& result) {
  Names names;
  for (const verdict::OutputResult& output : result.outputs) {
    if (!std::ranges::all_of(output.criteria, &tolerance::Criterion::ok)) {
      names.push_back(output.port);
    }
  }
  return names;
}

const verdict::OutputResult& output_of(const verdict::RunResult& result, std::string_view port) {
  return *std::ranges::find(result.outputs, port, &verdict::OutputResult::port);
}

TEST(Passes, both_are_judged_and_both_errors_named) {
  for (const char* mode : {"fp32", "bf16"}) {
    const verdict::RunResult result = run(mode, "");
    EXPECT_EQ(result.status, verdict::Status::pass) << result.failing;
    ASSERT_EQ(result.outputs.size(), 5U) << "o, lse, dq, dk, dv";
    for (const char* port : {"o", "lse"}) {
      EXPECT_EQ(output_of(result, port).pass, "attention_fwd");
      EXPECT_FALSE(output_of(result, port).ideal) << "the forward pass reads nothing of a device";
    }
    for (const char* port : {"dq", "dk", "dv"}) {
      const verdict::OutputResult& output = output_of(result, port);
      EXPECT_EQ(output.pass, "");
      ASSERT_TRUE(output.ideal);
      EXPECT_EQ(output.ideal_note, "with the reference's own o and lse instead of the device's");
      // The forward pass costs less than the backward pass does itself.
      EXPECT_NEAR(output.ideal->rel_l2, output.statistics.arithmetic.rel_l2, output.statistics.arithmetic.rel_l2);
      EXPECT_NE(output.ideal->rel_l2, output.statistics.arithmetic.rel_l2);
      ASSERT_EQ(output.findings.size(), 1U);
      EXPECT_EQ(output.findings[0].name, "passes");
      EXPECT_EQ(output.findings[0].measured, output.ideal->rel_l2);
    }
  }
}

TEST(Passes, a_wrong_statistic_is_blamed_on_the_forward_pass_alone) {
  for (const char* fault : {"stale_lse", "lse_in_log2"}) {
    for (const char* mode : {"fp32", "fp16", "bf16"}) {
      const verdict::RunResult result = run(mode, fault);
      EXPECT_EQ(result.status, verdict::Status::fail);
      EXPECT_EQ(failing(result), Names{"lse"}) << fault << ", " << mode;
      EXPECT_TRUE(result.failing.starts_with("lse: G1 bound ")) << result.failing;
      EXPECT_TRUE(result.failing.ends_with(", left by attention_fwd")) << result.failing;
      EXPECT_GT(output_of(result, "dv").ideal->rel_l2, 0.01) << "although the gradients are wrong altogether";
    }
  }
}

TEST(Passes, a_wrong_gradient_is_blamed_on_the_backward_pass_alone) {
  for (const char* mode : {"fp32", "fp16", "bf16"}) {
    EXPECT_EQ(failing(run(mode, "delta_missing")), (Names{"dq", "dk"})) << mode;
    EXPECT_EQ(failing(run(mode, "dq_not_zeroed")), Names{"dq"}) << mode;
  }
}

TEST(Passes, a_fault_of_both_fails_in_the_first) {
  const verdict::RunResult result = run("bf16", "mask_off_by_one");
  EXPECT_EQ(failing(result).front(), "o");
  EXPECT_TRUE(result.failing.ends_with(", left by attention_fwd")) << result.failing;
}

}  // namespace
}  // namespace numcheck::detect
