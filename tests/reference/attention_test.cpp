// The reference of attention by hand, and against the plain formula for random shapes, masks, biases and layouts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "attention_cases.hpp"
#include "attention_formula.hpp"
#include "op/attention_fwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using op::AttentionFwdParams;
using testing::Inputs;
using testing::noise;
using testing::PlainAttention;
using testing::Problem;
using testing::Random;
using testing::random_attention;
using testing::value_of;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Problem problem_of(const AttentionFwdParams& p) {
  return {&op::attention_fwd(), attention_fwd_reference(), op::to_params(p)};
}

Numbers o_of(const AttentionFwdParams& p, const Inputs& inputs) {
  return value_of(problem_of(p), inputs, "o");
}

Numbers lse_of(const AttentionFwdParams& p, const Inputs& inputs) {
  return value_of(problem_of(p), inputs, "lse");
}

void expect_near(const Numbers& got, const Numbers& wanted, double tolerance = 1e-14) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(wanted[i])) {
      EXPECT_NEAR(got[i], wanted[i], tolerance * std::max(1.0, std::fabs(wanted[i]))) << "element " << i;
    } else {
      EXPECT_EQ(std::isnan(got[i]), std::isnan(wanted[i])) << "element " << i;
      EXPECT_TRUE(std::isnan(wanted[i]) || got[i] == wanted[i]) << "element " << i << ": " << got[i];
    }
  }
}

// One channel, scores q k: exp(score) is 2, 4 and 8 for the keys 1, 2 and 3 in units of log 2.
const double kLog2 = std::log(2.0);
const Inputs kThreeKeys = {{"q", {1, 1, 1}}, {"k", {kLog2, 2 * kLog2, 3 * kLog2}}, {"v", {1, 10, 100}}};
AttentionFwdParams three_keys() {
  return {.sq = 3, .sk = 3, .d = 1, .scale = 1};
}

TEST(Attention, by_hand) {
  expect_near(o_of(three_keys(), kThreeKeys), Numbers(3, (2 + 40 + 800) / 14.0));
  expect_near(lse_of(three_keys(), kThreeKeys), Numbers(3, std::log(14)));
}

TEST(Attention, causal_by_hand) {
  AttentionFwdParams p = three_keys();
  p.mask = "causal";
  expect_near(o_of(p, kThreeKeys), {1, 42 / 6.0, 842 / 14.0});
  expect_near(lse_of(p, kThreeKeys), {std::log(2), std::log(6), std::log(14)});
}

TEST(Attention, corners_differ_if_lengths_do) {
  const Inputs one = {{"q", {1}}, {"k", {kLog2, 2 * kLog2, 3 * kLog2}}, {"v", {1, 10, 100}}};
  AttentionFwdParams p = three_keys();
  p.sq = 1;
  p.mask = "causal";
  expect_near(o_of(p, one), {1});
  p.mask = "causal_bottom_right";
  expect_near(o_of(p, one), {842 / 14.0});
  const Inputs many = {{"q", {1, 1, 1}}, {"k", {kLog2}}, {"v", {7}}};
  p.sq = 3;
  p.sk = 1;
  expect_near(o_of(p, many), {0, 0, 7});  // the first two see nothing
  expect_near(lse_of(p, many), {-kInfinity, -kInfinity, kLog2});
}

TEST(Attention, windows_by_hand) {
  AttentionFwdParams p = three_keys();
  p.window_left = 0;
  p.window_right = 0;
  expect_near(o_of(p, kThreeKeys), {1, 10, 100});
  p.window_left = 1;
  expect_near(o_of(p, kThreeKeys), {1, 42 / 6.0, 840 / 12.0});
  p.window_left = -1;
  p.window_right = 1;
  expect_near(o_of(p, kThreeKeys), {42 / 6.0, 842 / 14.0, 842 / 14.0});
  p.mask = "causal";
  p.window_left = 1;
  expect_near(o_of(p, kThreeKeys), {1, 42 / 6.0, 840 / 12.0});
}

TEST(Attention, denominators_by_hand) {
  AttentionFwdParams p = three_keys();
  p.softmax = "off_by_one";
  expect_near(o_of(p, kThreeKeys), Numbers(3, 842 / 15.0));
  expect_near(lse_of(p, kThreeKeys), Numbers(3, std::log(15)));
  p.softmax = "learnable";
  Inputs inputs = kThreeKeys;
  inputs["softmax_offset"] = {kLog2};
  expect_near(o_of(p, inputs), Numbers(3, 842 / 16.0));
  p.mask = "causal_bottom_right";
  p.sk = 1;
  inputs = {{"q", {1, 1, 1}}, {"k", {kLog2}}, {"v", {7}}, {"softmax_offset", {kLog2}}};
  expect_near(o_of(p, inputs), {0, 0, 3.5});
  expect_near(lse_of(p, inputs), {kLog2, kLog2, 2 * kLog2});
}

TEST(Attention, biases_by_hand) {
  AttentionFwdParams p = three_keys();
  p.scale = 2;
  Inputs inputs = {{"q", {1, 1, 1}}, {"k", {0, 0, 0}}, {"v", {1, 10, 100}}, {"bias", Numbers(9)}};
  for (std::size_t i = 0; i < 9; ++i) {
    inputs["bias"][i] = static_cast<double>(i % 3) * kLog2;  // exp: 1, 2, 4
  }
  p.bias = "post_scale";
  expect_near(o_of(p, inputs), Numbers(3, 421 / 7.0));
  p.bias = "pre_scale";
  expect_near(o_of(p, inputs), Numbers(3, (1 + 40 + 1600) / 21.0));
  p.bias = "alibi";  // one head: the slope is 2^-8
  const double near = std::exp(-0x1p-8), far = std::exp(-0x1p-7);
  expect_near(o_of(p, inputs), {(1 + 10 * near + 100 * far) / (1 + near + far),
                                (near + 10 + 100 * near) / (1 + 2 * near), (far + 10 * near + 100) / (1 + near + far)});
}

TEST(Attention, slopes_of_alibi) {
  EXPECT_EQ(op::alibi_slope(0, 8), 0.5);
  EXPECT_EQ(op::alibi_slope(7, 8), 0x1p-8);
  EXPECT_EQ(op::alibi_slope(11, 12), static_cast<double>(static_cast<float>(std::exp2(-3.5))));
  EXPECT_EQ(op::alibi_slope(8, 12), static_cast<double>(static_cast<float>(std::exp2(-0.5))));
}

TEST(Attention, softcap_by_hand) {
  AttentionFwdParams p = three_keys();
  p.softcap = 0.5;
  Numbers w;
  for (const double s : {1.0, 2.0, 3.0}) {
    w.push_back(std::exp(0.5 * std::tanh(s * kLog2 / 0.5)));
  }
  expect_near(o_of(p, kThreeKeys), Numbers(3, (w[0] + 10 * w[1] + 100 * w[2]) / (w[0] + w[1] + w[2])));
}

TEST(Attention, dropout_by_hand) {
  AttentionFwdParams p = three_keys();
  p.dropout = 0.75;
  Inputs inputs = kThreeKeys;
  inputs["dropout_mask"] = {1, 1, 1, 0, 1, 0, 0, 0, 0};
  expect_near(o_of(p, inputs), {4 * 842 / 14.0, 4 * 40 / 14.0, 0});
  expect_near(lse_of(p, inputs), Numbers(3, std::log(14)));  // of all weights
}

TEST(Attention, masks_of_dropout_have_its_share_whatever_the_draws) {
  AttentionFwdParams p;
  p.sq = 200;
  p.sk = 300;
  p.d = 1;
  p.dropout = 0.3;
  const Problem problem = problem_of(p);
  for (const double draw : {0.0, 1.0, std::nan("")}) {
    const Numbers mask = testing::derived(problem, {}, "dropout_mask", Numbers(60'000, draw));
    const auto dropped = std::ranges::count(mask, 0.0);
    EXPECT_EQ(dropped + std::ranges::count(mask, 1.0), 60'000);
    EXPECT_NEAR(static_cast<double>(dropped), 18'000, 5 * std::sqrt(60'000 * 0.3 * 0.7));
  }
}

TEST(Attention, largest_scores_by_hand) {
  AttentionFwdParams p = three_keys();
  p.max_logit = true;
  p.mask = "causal";
  const auto of = [&p](const Inputs& inputs) { return value_of(problem_of(p), inputs, "max_logit"); };
  expect_near(of(kThreeKeys), {kLog2, 2 * kLog2, 3 * kLog2});
  p.softmax = "learnable";
  Inputs inputs = kThreeKeys;
  inputs["softmax_offset"] = {5};
  expect_near(of(inputs), {kLog2, 2 * kLog2, 3 * kLog2});  // without the sink
  p.scale = -1;
  p.softmax = "vanilla";
  expect_near(of(kThreeKeys), Numbers(3, -kLog2));
  p.mask = "causal_bottom_right";
  p.sk = 1;
  expect_near(of({{"q", {1, 1, 1}}, {"k", {kLog2}}, {"v", {7}}}), {-kInfinity, -kInfinity, -kLog2});
}

TEST(Attention, huge_scores_neither_overflow_nor_vanish) {
  AttentionFwdParams p = three_keys();
  p.scale = 1e4;
  expect_near(o_of(p, kThreeKeys), Numbers(3, 100));
  expect_near(lse_of(p, kThreeKeys), Numbers(3, 3e4 * kLog2));
  p.scale = -1e4;
  expect_near(o_of(p, kThreeKeys), Numbers(3, 1));
}

TEST(Attention, values_that_are_not_seen_do_not_leak) {
  AttentionFwdParams p = three_keys();
  p.mask = "causal";
  Inputs inputs = kThreeKeys;
  inputs["v"][2] = std::nan("");
  inputs["k"][1] = kInfinity;
  const Numbers o = o_of(p, inputs);
  EXPECT_EQ(o[0], 1);
  EXPECT_TRUE(std::isnan(o[2]));
}

TEST(Attention, lengths_of_sequences) {
  const AttentionFwdParams p = {
      .batches = 3, .sq = 3, .sk = 3, .d = 1, .scale = 1, .mask = "padding_causal_bottom_right"};
  Inputs inputs;
  for (const char* port : {"q", "k", "v"}) {
    for (int b = 0; b < 3; ++b) {
      inputs[port].insert(inputs[port].end(), kThreeKeys.at(port).begin(), kThreeKeys.at(port).end());
    }
  }
  inputs["q_lengths"] = {3, 1, 2};
  inputs["kv_lengths"] = {2, 3, 0};
  const op::Values values = testing::evaluate(problem_of(p), inputs);
  const Numbers o = value_of(values, "o");
  expect_near({o.begin(), o.begin() + 4}, {0, 1, 42 / 6.0, 842 / 14.0});
  EXPECT_EQ(o[6], 0);
  EXPECT_EQ(value_of(values, "lse")[6], -kInfinity) << "a sequence without keys";
}

TEST(Attention, agrees_with_the_plain_formula) {
  Random random(20261123);
  for (unsigned round = 0; round < 150; ++round) {
    AttentionFwdParams p = random_attention(random, {150, 1200, 3, 9});
    p.max_logit = true;
    const Problem problem = problem_of(p);
    ASSERT_TRUE(problem.op->check(problem.params, *op::find_mode("fp32")).empty());
    Inputs inputs;
    for (const op::Port& port : problem.ports()) {
      if (port.role != op::Role::input) {
        continue;
      }
      Numbers draws =
          noise(static_cast<std::size_t>(port.elements()), 7 * round + static_cast<unsigned>(inputs.size()));
      inputs[std::string(port.name)] =
          !port.is_generated() ? testing::derived(problem, inputs, port.name, draws) : draws;
    }
    const op::Values values = testing::evaluate(problem, inputs);
    const Numbers o = value_of(values, "o"), lse = value_of(values, "lse"), top = value_of(values, "max_logit");
    const PlainAttention plain{p, inputs};
    for (std::int64_t b = 0; b < p.batches; ++b) {
      const std::int64_t queries =
          p.has_lengths() ? static_cast<std::int64_t>(inputs["q_lengths"][static_cast<std::size_t>(b)]) : p.sq;
      for (std::int64_t h = 0; h < p.heads; ++h) {
        for (std::int64_t i = 0; i < queries; i += p.sq > 20 ? 7 : 1) {
          const Numbers row = plain.row(b, h, i);
          const std::int64_t statistic =
              p.layout == "thd" ? (plain.token("q", b) + i) * p.heads + h : (b * p.heads + h) * p.sq + i;
          const auto query = static_cast<std::size_t>(statistic);
          expect_near({lse[query], top[query]}, {row.front(), row.back()}, 1e-13);
          for (std::int64_t c = 0; c < p.value_channels(); ++c) {
            Inputs out = {{"o", o}};
            if (p.has_lengths()) {
              out["q_lengths"] = inputs["q_lengths"];
            }
            expect_near({PlainAttention{p, out}.element("o", b, h, i, c, p.heads, p.sq, p.value_channels())},
                        {row[static_cast<std::size_t>(1 + c)]}, 1e-12);
          }
        }
      }
      if (HasFailure()) {
        FAIL() << "round " << round << ": " << p.mask << " " << p.bias << " " << p.softmax << " " << p.layout << " sq "
               << p.sq << " sk " << p.sk << " window " << p.window_left << " " << p.window_right;
      }
    }
  }
}

TEST(Attention, visible_scores_are_those_that_the_queries_see) {
  const std::vector<std::int64_t> sizes = {1, 2, 5, 8}, windows = {-1, 0, 1, 3, 12};
  for (const char* const mask : {"none", "causal", "causal_bottom_right"}) {
    for (const std::int64_t sq : sizes) {
      for (const std::int64_t sk : sizes) {
        for (const std::int64_t left : windows) {
          for (const std::int64_t right : windows) {
            const AttentionFwdParams p = {
                .batches = 2, .heads = 3, .sq = sq, .sk = sk, .mask = mask, .window_left = left, .window_right = right};
            double scores = 0;
            for (std::int64_t i = 0; i < sq; ++i) {
              scores += static_cast<double>(p.visible(i, sq, sk).size());
            }
            ASSERT_EQ(op::visible_scores(p), 6 * scores)
                << mask << " " << sq << " x " << sk << " " << left << " " << right;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace numcheck::reference
