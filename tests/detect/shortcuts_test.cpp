// Results that are less precise than their mode promises end as warnings if a shortcut that the run declares explains
// them, and otherwise fail.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "data/distribution.hpp"
#include "data/distribution_params.hpp"
#include "mini_run.hpp"
#include "op/attention_fwd.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"
#include "op/product_statistics.hpp"

namespace numcheck::detect {
namespace {

struct Setting {
  std::string_view mode;
  op::GemmParams p;
  std::string fault;
  model::DeclaredRounding declared;
  bool classify = false;
};

op::GemmParams product(std::int64_t k) {
  op::GemmParams p;
  p.m = 120;
  p.n = 88;
  p.k = k;
  return p;
}

op::GemmParams with_epilogue(std::int64_t k, std::string epilogue, bool bias) {
  op::GemmParams p = product(k);
  p.epilogue = std::move(epilogue);
  p.bias = bias;
  return p;
}

verdict::RunResult run(const Setting& s, const std::function<void(std::span<const worker::HostPort>)>& tamper = {}) {
  plan::Case c;
  c.op = &op::gemm();
  c.mode = op::find_mode(s.mode);
  c.params = op::to_params(s.p);
  c.backend = "sim";
  c.inputs.common = data::make_distribution("normal");
  c.seed = 7;
  plan::identify(c);
  MiniRunner runner;
  model::DeclaredRounding declared = s.declared;
  declared.in_place = s.p.in_place;
  return runner.run(c, 90, {.inject = s.fault, .classify = s.classify}, declared, tamper).runs.front();
}

const std::vector<Setting>& explained() {
  static const std::vector<Setting> all = {
      {"bf16", with_epilogue(64, "none", true), "sum_rounded", {.bias = true}},
      {"fp16", with_epilogue(64, "relu", true), "sum_rounded", {.bias = true}},
      {"fp16", with_epilogue(16, "gelu", true), "sum_rounded", {.bias = true, .gelu = true}},
      {"fp32", with_epilogue(8, "gelu", false), "approximate_tanh", {.gelu = true}}};
  return all;
}

// NaN is wrong, whatever it comes from; a cause of it need not account for numbers that a shortcut explains.
TEST(Shortcuts, explain_numbers_beside_nan_of_another_cause) {
  const auto with_nan = [](std::span<const worker::HostPort> host) {
    const auto d = std::ranges::find_if(host, [](const worker::HostPort& port) { return port.port->name == "d"; });
    std::ranges::fill(d->bytes.subspan(40 * sizeof(float), sizeof(float)), std::byte{0xff});
    d->bytes[40 * sizeof(float)] = std::byte{0xfe};  // not as if it had not been written
  };
  for (const bool declared : {true, false}) {
    const verdict::RunResult result =
        run({"fp32", with_epilogue(8, "gelu", false), "approximate_tanh", {.gelu = declared}}, with_nan);
    EXPECT_EQ(result.status, verdict::Status::fail);
    for (const tolerance::Criterion& criterion : result.outputs.front().criteria) {
      if (declared) {
        EXPECT_EQ(criterion.ok, criterion.name != "G0 pattern") << criterion.name;
      }
    }
    EXPECT_EQ(result.outputs.front().declared.empty(), !declared);
  }
}

TEST(Shortcuts, are_warnings_where_they_are_declared) {
  for (Setting s : explained()) {
    const verdict::RunResult result = run(s);
    EXPECT_EQ(result.status, verdict::Status::warn) << s.fault << ' ' << s.mode << ": " << result.failing;
    EXPECT_NE(result.failing.find(s.fault == "sum_rounded" ? "before the epilogue" : "tanh of gelu"), std::string::npos)
        << result.failing;
    s.declared = {};
    EXPECT_EQ(run(s).status, verdict::Status::fail) << s.fault << " in " << s.mode << " is excused by no shortcut";
    s.fault.clear();
    EXPECT_EQ(run(s).status, verdict::Status::pass) << s.mode;
  }
}

TEST(Shortcuts, show_in_the_bits_of_operands_as_the_run_converted_them) {
  Setting s{"tf32", with_epilogue(8, "gelu", true), "approximate_tanh", {.gelu = true}, true};
  const verdict::RunResult result = run(s);
  EXPECT_EQ(result.status, verdict::Status::warn) << result.failing;
  s.declared = {};
  EXPECT_EQ(run(s).status, verdict::Status::fail);
}

TEST(Shortcuts, excuse_nothing_else) {
  for (Setting s : explained()) {
    for (const char* fault : {"scale_1_01", "missing_k_tail", "unreduced_split_k", "unwritten_tile"}) {
      s.fault = fault;
      EXPECT_EQ(run(s).status, verdict::Status::fail) << fault << " in " << s.mode << ' ' << s.p.epilogue;
    }
  }
  const model::DeclaredRounding gelu = {.gelu = true};
  EXPECT_EQ(run({"fp32", with_epilogue(8, "gelu", false), "gelu_erf", gelu}).status, verdict::Status::fail);
  const model::DeclaredRounding bias = {.bias = true};
  EXPECT_EQ(run({"bf16", with_epilogue(64, "none", true), "bias_missing", bias}).status, verdict::Status::fail);
  EXPECT_EQ(run({"bf16", with_epilogue(64, "none", true), "truncated_output", bias}).status, verdict::Status::fail);
}

TEST(Shortcuts, need_their_bits) {
  op::GemmParams p = product(64);
  p.in_place = true;
  for (const double beta : {1.0, 0.02}) {
    p.beta = beta;
    for (const char* fault : {"fp16_accumulation", "double_rounded_output", "beta_ignored", "truncated_output"}) {
      EXPECT_EQ(run({"bf16", p, fault, {}}).status, verdict::Status::fail) << fault << ' ' << beta;
    }
    const verdict::RunResult rounded = run({"bf16", p, "product_rounded", {}});
    EXPECT_NE(rounded.status, verdict::Status::fail) << beta << ": " << rounded.failing;
  }
  p.beta = 1;
  p.bias = true;
  const verdict::RunResult sum = run({"bf16", p, "sum_rounded", {.bias = true}});
  EXPECT_EQ(sum.status, verdict::Status::warn) << sum.failing;
  EXPECT_NE(sum.failing.find("the sum is rounded"), std::string::npos) << "not the product: " << sum.failing;
}

// Most of C is -8, and a few numbers are 40: less than half an ulp of most sums, which a rounded product loses alike in all of them.
TEST(Shortcuts, lose_addends_that_hardly_vary) {
  plan::Case c;
  c.op = &op::gemm();
  c.mode = op::find_mode("bf16");
  op::GemmParams p;
  p.m = 96;
  p.n = 72;
  p.k = 56;
  p.trans_b = true;
  p.beta = 1;
  p.in_place = true;
  c.params = op::to_params(p);
  c.backend = "sim";
  c.inputs.common = {"activations", op::to_params(data::ActivationParams{.drift = -8, .sink = 40})};
  for (c.seed = 1; c.seed <= 40; ++c.seed) {
    plan::identify(c);
    for (const char* fault : {"product_rounded", "scale_1_01"}) {
      MiniRunner runner;
      const verdict::RunResult result =
          runner.run(c, 90, {.inject = fault, .classify = false}, model::DeclaredRounding{.in_place = true})
              .runs.front();
      EXPECT_EQ(result.status,
                fault == std::string_view("product_rounded") ? verdict::Status::warn : verdict::Status::fail)
          << c.seed << ' ' << fault << ": " << result.failing;
    }
  }
}

// Libraries choose an algorithm for each group.
TEST(Shortcuts, slices_of_a_group_excuse_no_other) {
  op::GroupedGemmParams p;
  p.m = "72";
  p.n = "56";
  p.k = "256";
  p.groups = 2;
  plan::Case c;
  c.op = &op::grouped_gemm();
  c.mode = op::find_mode("bf16");
  c.params = op::to_params(p);
  c.backend = "sim";
  c.inputs.common = data::make_distribution("normal");
  c.seed = 7;
  plan::identify(c);
  for (const bool is_last : {false, true}) {
    model::DeclaredRounding declared{.slices = 4};
    declared.group_slices = is_last ? std::vector<int>{1, 4} : std::vector<int>{4, 1};
    MiniRunner runner;
    const verdict::RunResult result =
        runner.run(c, 90, {.inject = "last_group_k_tail", .classify = false}, declared).runs.front();
    EXPECT_EQ(result.status, verdict::Status::fail);
    const auto output = std::ranges::find(result.outputs, "d1", &verdict::OutputResult::port);
    ASSERT_NE(output, result.outputs.end());
    EXPECT_EQ(std::ranges::count(output->findings, "declared roundings", &op::Finding::name), is_last ? 1 : 0);
  }
}

TEST(Shortcuts, need_their_bits_behind_gelu) {
  for (const std::string_view mode : {"bf16", "fp16"}) {
    op::GemmParams p = with_epilogue(256, "gelu", true);
    p.alpha = 0.0625;
    const model::DeclaredRounding declared = {.bias = true, .gelu = true};
    const verdict::RunResult rounded = run({mode, p, "sum_rounded", declared});
    EXPECT_EQ(rounded.status, verdict::Status::warn) << mode << ": " << rounded.failing;
    for (const char* fault : {"fp16_accumulation", "truncated_output", "perturb_all=1e-3", "perturb_noise=1e-3",
                              "gelu_erf", "scale_1_01"}) {
      EXPECT_EQ(run({mode, p, fault, declared}).status, verdict::Status::fail) << fault << " in " << mode;
    }
  }
  op::GemmParams p = with_epilogue(256, "gelu", true);
  p.alpha = 0.0625;
  const model::DeclaredRounding declared = {.bias = true, .gelu = true};
  EXPECT_EQ(run({"bf16", p, "double_rounded_output", declared}).status, verdict::Status::fail);
  EXPECT_EQ(run({"fp32", with_epilogue(8, "gelu", false), "perturb_noise=2e-5", {.gelu = true}}).status,
            verdict::Status::fail);
}

TEST(Shortcuts, a_rounded_product_is_named_and_only_in_place_excused) {
  for (const std::string_view mode : {"bf16", "fp16"}) {
    std::vector<double> shares;
    for (const bool in_place : {false, true}) {
      Setting s{mode, product(256), "product_rounded", {}};
      s.p.m = 256;
      s.p.n = 160;
      s.p.trans_b = true;
      s.p.beta = 1;
      s.p.in_place = in_place;
      const verdict::RunResult result = run(s);
      EXPECT_EQ(result.status, in_place ? verdict::Status::warn : verdict::Status::fail) << mode;
      EXPECT_NE(result.failing.find(in_place ? "C is added, in place" : "G1 bound"), std::string::npos)
          << result.failing;
      std::vector<op::Finding> findings = result.outputs.front().findings;
      std::erase_if(findings, [](const op::Finding& finding) { return finding.name == op::kUpdatesLost; });
      ASSERT_EQ(findings.size(), in_place ? 2U : 1U) << mode;
      EXPECT_EQ(findings.front().name, "product_rounded_before_c");
      shares.push_back(findings.front().measured);
      s.fault.clear();
      EXPECT_EQ(run(s).status, verdict::Status::pass) << mode;
    }
    EXPECT_GT(shares.back(), 0.99) << mode;
    EXPECT_EQ(shares.front(), shares.back()) << mode;
  }
}

TEST(Shortcuts, of_relu_alone_excuse_nothing) {
  EXPECT_EQ(run({"bf16", with_epilogue(64, "relu", false), "truncated_output", {}}).status, verdict::Status::fail);
}

// As the text of a file of tensors may have it.
TEST(Shortcuts, that_a_product_cannot_have_taken_excuse_nothing) {
  EXPECT_EQ(run({"fp32", product(8), "perturb_noise=3e-6", {.gelu = true}}).status, verdict::Status::fail);
  EXPECT_EQ(run({"bf16", product(64), "double_rounded_output", {.bias = true, .gelu = true}}).status,
            verdict::Status::fail);
}

TEST(Shortcuts, may_come_together) {
  op::GemmParams p = product(64);
  p.beta = 1;
  p.in_place = true;
  p.bias = true;
  const verdict::RunResult one = run({"bf16", p, "product_rounded", {.bias = true}});
  EXPECT_EQ(one.status, verdict::Status::warn) << one.failing;
  p.epilogue = "gelu";
  const verdict::RunResult narrow = run({"fp16", p, "approximate_tanh", {.bias = true, .gelu = true}});
  EXPECT_NE(narrow.status, verdict::Status::fail) << narrow.failing;
}

verdict::RunResult run_attention(std::string_view mode, std::string fault, const model::AttentionRounding& declared) {
  op::AttentionFwdParams p;
  p.heads = 2;
  p.sq = 96;
  p.sk = 160;
  p.d = 48;
  p.mask = "causal";
  plan::Case c;
  c.op = &op::attention_fwd();
  c.mode = op::find_mode(mode);
  c.params = op::to_params(p);
  c.backend = "sim";
  c.inputs.common = data::make_distribution("normal");
  c.seed = 7;
  plan::identify(c);
  MiniRunner runner;
  const model::DeclaredRounding rounding{.attention = declared};
  const MiniResult result = runner.run(c, 90, {.inject = std::move(fault), .classify = false}, rounding);
  EXPECT_FALSE(result.runs.empty()) << result.outcome.reason;
  return result.runs.empty() ? verdict::RunResult() : result.runs.front();
}

TEST(AttentionShortcuts, are_warnings_where_they_are_declared) {
  constexpr model::AttentionRounding kScores{.scores = true};
  for (const std::string_view mode : {"bf16", "fp16"}) {
    const verdict::RunResult stored = run_attention(mode, "rounded_scores", kScores);
    EXPECT_EQ(stored.status, verdict::Status::warn) << stored.failing;
    EXPECT_NE(stored.failing.find("scores are stored in " + std::string(mode)), std::string::npos) << stored.failing;
    EXPECT_EQ(run_attention(mode, "rounded_scores", {}).status, verdict::Status::fail) << mode;
    EXPECT_EQ(run_attention(mode, "rounded_scores", {.bias_sum = true}).status, verdict::Status::fail) << mode;
    EXPECT_EQ(run_attention(mode, "", kScores).status, verdict::Status::pass)
        << "what passes needs no excuse, " << mode;
    for (const char* fault : {"mask_off_by_one", "softmax_scale_missing", "scale_by_d"}) {
      const verdict::RunResult wrong = run_attention(mode, fault, kScores);
      EXPECT_EQ(wrong.status, verdict::Status::fail) << fault << ' ' << mode;
    }
  }
}

}  // namespace
}  // namespace numcheck::detect
