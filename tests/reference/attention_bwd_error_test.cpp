// The error model of attention's gradients against emulated kernels: tiled, with weights recomputed from lse, in the
// formats of each mode. No emulated error may exceed its bound, and its size must be what the model predicts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "attention_bwd_fit.hpp"
#include "attention_bwd_kernel.hpp"
#include "attention_cases.hpp"
#include "core/codec.hpp"
#include "op/attention_bwd.hpp"
#include "op_problem.hpp"
#include "reference/attention_problem.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference {
namespace {

using testing::BwdData;
using testing::Fit;
using testing::fit_of;
using testing::Gradients;
using testing::Inputs;
using testing::inputs_of;
using testing::Kernel;
using testing::noise;
using testing::Problem;
using testing::request_of;
using Numbers = std::vector<double>;
using Floats = std::vector<float>;

void check(const Kernel& kernel, const BwdData& data) {
  const op::AttentionParams& p = kernel.p;
  const std::string& mode = kernel.mode;
  const Problem problem{&op::attention_bwd(), attention_bwd_reference(), op::to_params(p), mode};
  const Inputs inputs = inputs_of(problem, kernel.format(), data);
  const op::Values values = testing::evaluate(problem, inputs);
  const model::ModelRequest request = request_of(problem, mode);
  for (const auto& [port, numbers] : kernel.run(inputs)) {
    const Fit fit = fit_of(values, port, numbers, request);
    const std::string what = mode + (", " + data.name) + ", " + port + ", mask " + p.mask +
                             (kernel.truncates ? ", tensor cores" : ", FP32 chain") + (p.softcap != 0 ? ", cap" : "") +
                             (p.has_bias_tensor() ? ", bias " + p.bias : "") +
                             (p.has_dropout() ? ", dropout " + std::to_string(p.dropout) : "");
    EXPECT_LE(fit.worst, 1) << what;
    ::testing::Test::RecordProperty(what, std::to_string(fit.worst) + " " + std::to_string(fit.rms));
    if (port == "dsoftmax_offset") {
      EXPECT_LE(fit.rms, 4) << what;  // a single number
      continue;
    }
    EXPECT_LE(fit.rms, 1.3) << what;
    if (port != "dbias") {  // in 16 bits, its error is mostly that of its own rounding
      const bool narrow = kernel.format() != core::Dtype::fp32;
      EXPECT_GE(fit.rms, data.loose ? 0
                         : narrow   ? 0.4
                                    : 0.25)
          << what << ": the prediction is too large to see a fault";
    }
  }
}

class AttentionBwdError : public ::testing::TestWithParam<const char*> {};

TEST_P(AttentionBwdError, of_tiled_kernels_is_bounded_and_predicted) {
  const std::string mode = GetParam();
  const std::vector<BwdData> all = {{"normal"},
                                    {"large scores", 12},
                                    {"equal scores", 1e-3},
                                    {"values of one sign", 1, 5},
                                    {"do along o", 1, 5, 1, 1},
                                    {"do along o, peaked", 12, 0, 0.01, 1},
                                    {"small gradients", 1, 0, 1e-5, 0, 0, mode == "fp16"},
                                    {"one sign", 0.2, 0, 1, 0, 1, true},
                                    {"one sign, large", 1, 0, 1, 0, 5, true}};
  for (const BwdData& data : all) {
    for (const char* mask : {"none", "causal"}) {
      for (const int variant : {0, 1, 2, 3, 4}) {
        Kernel kernel;
        kernel.p.sq = 150;
        kernel.p.sk = mask == std::string("none") ? 333 : 150;
        kernel.p.d = 64;
        kernel.p.mask = mask;
        kernel.p.layout = "bhsd";
        kernel.mode = mode;
        kernel.base_2 = variant % 2 == 0;
        kernel.truncates = variant != 1;
        kernel.scale_first = variant == 1;
        kernel.parts = variant == 0 ? 1 : 3;
        if (variant == 2) {
          kernel.p.softcap = 2;
        } else if (variant == 3) {
          kernel.p.bias = data.q == 1 ? "post_scale" : "pre_scale";
          kernel.p.softmax = "learnable";
          kernel.p.batches = 2;
        } else if (variant == 4) {
          kernel.p.heads = 4;
          kernel.p.kv_heads = 2;
          kernel.p.dv = 40;
        }
        check(kernel, data);
      }
    }
  }
}

TEST_P(AttentionBwdError, of_dropout_is_bounded_and_predicted) {
  const std::string mode = GetParam();
  const std::vector<BwdData> all = {{"normal"},
                                    {"large scores", 12},
                                    {"equal scores", 1e-3},
                                    {"values of one sign", 1, 5},
                                    {"do along o", 1, 5, 1, 1},
                                    {"small gradients", 1, 0, 1e-5, 0, 0, mode == "fp16"}};
  for (const BwdData& data : all) {
    for (const double dropout : {0.1, 0.5, 0.9}) {
      for (const int variant : {0, 1, 2}) {
        Kernel kernel;
        kernel.p.sq = 150;
        kernel.p.sk = variant == 1 ? 150 : 333;
        kernel.p.d = 64;
        kernel.p.mask = variant == 1 ? "causal" : "none";
        kernel.p.layout = "bhsd";
        kernel.p.dropout = dropout;
        kernel.mode = mode;
        kernel.base_2 = variant == 0;
        kernel.truncates = variant != 1;
        kernel.drops_last = variant == 0;
        if (variant == 2) {
          kernel.p.bias = "post_scale";
          kernel.p.softmax = "learnable";
          kernel.p.heads = 4;
          kernel.p.kv_heads = 2;
        }
        check(kernel, data);
      }
    }
  }
}

// Inputs of a few numbers in BF16: gradients of scores that are kept are all rounded alike, and so are those that are dropped,
// but their sum is nearly 0.
TEST(AttentionBwdDropout, roundings_that_are_alike_count_although_the_sum_vanishes) {
  Kernel kernel;
  kernel.p.sq = 75;
  kernel.p.sk = 127;
  kernel.p.d = 64;
  kernel.p.layout = "bhsd";
  kernel.p.dropout = 0.5;
  kernel.mode = "bf16";
  const Problem problem{&op::attention_bwd(), attention_bwd_reference(), op::to_params(kernel.p), kernel.mode};
  Inputs inputs = inputs_of(problem, kernel.format(), {"normal"});
  unsigned seed = 0;
  for (const char* port : {"q", "k", "v", "do"}) {
    inputs[port] = noise(inputs[port].size(), ++seed, 0.001, 0.1);
    std::ranges::transform(inputs[port], inputs[port].begin(),
                           [](double x) { return core::round_to(x, core::Dtype::bf16); });
  }
  for (const auto& [port, format] : {std::pair("o", core::Dtype::bf16), std::pair("lse", core::Dtype::fp32)}) {
    Numbers x = testing::derived(problem, inputs, port, Numbers(inputs[port].size()));
    std::ranges::transform(x, x.begin(), [format](double y) { return core::round_to(y, format); });
    inputs[port] = std::move(x);
  }
  op::Values values = testing::evaluate(problem, inputs);
  const model::ModelRequest request = request_of(problem, kernel.mode);
  const auto got = kernel.run(inputs);
  const Fit fit = fit_of(values, "dq", got.find("dq")->second, request);
  EXPECT_LE(fit.worst, 1);
  EXPECT_LE(fit.rms, 1.5);
  op::OutputValues& dq = *std::ranges::find(values.outputs, "dq", &op::OutputValues::port);
  std::ranges::fill(dq.row_facts.at(static_cast<std::size_t>(tolerance::GradientFact::common_shift)).span(), 0.0F);
  EXPECT_GT(fit_of(values, "dq", got.find("dq")->second, request).rms, 2);
}

// D off by 2 % where it does not cancel: every error stays below its bound, and few elements are beyond 2 sqrt V.
TEST(AttentionBwdFault, of_a_few_percent_is_seen) {
  Kernel kernel;
  kernel.p.sq = kernel.p.sk = 150;
  kernel.p.d = 64;
  kernel.p.layout = "bhsd";
  kernel.mode = "bf16";
  kernel.dot_factor = 0.98;
  const Problem problem{&op::attention_bwd(), attention_bwd_reference(), op::to_params(kernel.p), kernel.mode};
  const Inputs inputs = inputs_of(problem, kernel.format(), {"do along o", 1, 5, 1, 1});
  const op::Values values = testing::evaluate(problem, inputs);
  const Gradients got = kernel.run(inputs);
  const model::ModelRequest request = request_of(problem, kernel.mode);
  EXPECT_GT(fit_of(values, "dq", got.find("dq")->second, request).rms, 2);
  EXPECT_GT(fit_of(values, "dk", got.find("dk")->second, request).rms, 2);
  EXPECT_LE(fit_of(values, "dv", got.find("dv")->second, request).rms, 1.3);
}

// CUDA's tanhf is off by an ulp in the same direction for all scores that are alike.
TEST(AttentionBwdCap, error_of_a_tanh_that_is_off_by_an_ulp_is_predicted) {
  Kernel kernel;
  kernel.p.sq = kernel.p.sk = 150;
  kernel.p.d = 64;
  kernel.p.scale = 0.3;
  kernel.p.softcap = 30;
  kernel.p.layout = "bhsd";
  kernel.mode = "fp32";
  kernel.truncates = kernel.base_2 = false;
  kernel.tanh_excess = 0x1p-23F;
  const Problem problem{&op::attention_bwd(), attention_bwd_reference(), op::to_params(kernel.p), kernel.mode};
  BwdData alike{"alike"};
  alike.q = alike.gradient = 0.1;
  alike.all_mean = 0.75;
  const Inputs inputs = inputs_of(problem, kernel.format(), alike);
  const op::Values values = testing::evaluate(problem, inputs);
  model::ModelRequest request = request_of(problem, kernel.mode);
  request.first_pattern.order = request.second_pattern.order = data::Order::structured;
  const Fit fit = fit_of(values, "dv", kernel.run(inputs).find("dv")->second, request);
  EXPECT_LE(fit.worst, 1);
  EXPECT_LE(fit.rms, 1.3);
  EXPECT_GE(fit.rms, 0.25) << "the prediction is too large to see a fault";
}

/// Of two queries, the first gives a key nearly all of its weight, and drops it; the second hardly sees the key, through a cap
/// that is nearly flat there.
TEST(AttentionBwdCap, error_of_its_slope_is_predicted_where_the_key_with_the_weight_is_dropped) {
  op::AttentionParams p;
  p.sq = p.sk = p.d = 2;
  p.scale = 1;
  p.softcap = 30;
  p.bias = "post_scale";
  p.dropout = 0.9;
  const Problem problem{&op::attention_bwd(), attention_bwd_reference(), op::to_params(p), "fp32"};
  Inputs inputs = {{"q", {0.01, 5, 2, 0.7}},  // the second's score is 9 caps
                   {"k", {100, 100, 0, 0}},        {"v", {1000, 0, 0, 1}}, {"bias", {60, 0, -45, 0}},
                   {"dropout_mask", {0, 1, 1, 0}}, {"do", {0, 1, 1000, 0}}};
  for (const char* port : {"o", "lse"}) {
    inputs[port] = testing::derived(problem, inputs, port, Numbers(port == std::string("o") ? 4 : 2));
  }
  const op::Values values = testing::evaluate(problem, inputs);
  const double y = testing::value_of(values, "dk")[0];
  std::vector<float> bound(4), deviation(4);
  tolerance::attention_bwd_error(request_of(problem, "fp32"), values, "dk", bound, deviation);
  ASSERT_NEAR(y, 3.7e-7, 0.1e-7);
  EXPECT_GE(3 * static_cast<double>(deviation[0]), y) << "a tanh that is rounded to 1 leaves nothing of it";
  EXPECT_LE(static_cast<double>(deviation[0]), 7 * y) << "of 2 ulp";
}

/// B and sqrt(V) of a port.
std::pair<Floats, Floats> errors_of(const Problem& problem, const op::Values& values, std::string_view port) {
  std::pair<Floats, Floats> out;
  const std::size_t size = testing::output_named(values, port).value.size();
  out.first.resize(size);
  out.second.resize(size);
  tolerance::attention_bwd_error(request_of(problem, std::string(problem.mode)), values, port, out.first, out.second);
  return out;
}

TEST(AttentionBwdBound, is_finite_for_all_masks_and_zero_where_nothing_is_seen) {
  testing::Random random(5);
  for (unsigned round = 0; round < 40; ++round) {
    const op::AttentionParams p = testing::random_attention(random, {200, 200, 2, 5});
    for (const char* mode : {"bf16", "fp32"}) {
      const Problem problem{&op::attention_bwd(), attention_bwd_reference(), op::to_params(p), mode};
      const op::Values values = testing::evaluate(problem, inputs_of(problem, op::find_mode(mode)->first, {"normal"}));
      for (const op::OutputValues& output : values.outputs) {
        auto [bound, variance] = errors_of(problem, values, output.port);
        for (const op::OutputValues::Range& unused : output.outside) {
          for (auto n = static_cast<std::size_t>(unused.begin); n < static_cast<std::size_t>(unused.end); ++n) {
            ASSERT_EQ(bound[n], std::numeric_limits<float>::max());
            bound[n] = variance[n] = 0;
          }
        }
        for (std::size_t n = 0; n < bound.size(); ++n) {
          ASSERT_TRUE(bound[n] < 1e30F && variance[n] < 1e30F) << round << " " << output.port << " " << mode;
          ASSERT_TRUE(bound[n] > 0 || output.value[n] == 0) << round << " " << output.port << " " << mode;
        }
      }
    }
  }
}

TEST(AttentionBwdBound, does_not_see_what_is_masked) {
  op::AttentionParams p;
  p.sq = p.sk = 3;
  p.d = 2;
  p.mask = "causal";
  const Problem problem{&op::attention_bwd(), attention_bwd_reference(), op::to_params(p), "bf16"};
  Inputs inputs = inputs_of(problem, core::Dtype::bf16, {"normal"});
  const op::Values clean = testing::evaluate(problem, inputs);
  inputs["k"][4] = inputs["v"][4] = std::nan("");
  const auto queries = errors_of(problem, testing::evaluate(problem, inputs), "dq");
  const auto before = errors_of(problem, clean, "dq");
  for (std::size_t n = 0; n < 4; ++n) {  // the first two queries do not see the third key
    EXPECT_GT(queries.first[n], 0);
    EXPECT_NEAR(queries.first[n], before.first[n], 1e-5 * static_cast<double>(before.first[n]));
  }
  EXPECT_EQ(queries.first[4], std::numeric_limits<float>::max());
}

INSTANTIATE_TEST_SUITE_P(Modes, AttentionBwdError, ::testing::Values("bf16", "fp16", "tf32", "fp32"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace numcheck::reference
