// FP8 attention: which scales leave an order in which FP32 holds all products, and the error model of dp_amax, which is not
// a tensor of gradients and has no facts of rows.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op_problem.hpp"
#include "reference/attention_problem.hpp"
#include "reference/attention_tile.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::Problem;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

op::AttentionParams small() {
  op::AttentionParams p;
  p.heads = 2;
  p.sq = 5;
  p.sk = 6;
  p.d = 4;
  p.scale = 1;
  return p;
}

Problem backward(const op::AttentionParams& p, std::string_view mode = "fp8_hybrid") {
  return {&op::attention_bwd(), attention_bwd_reference(), op::to_params(p), mode};
}

/// Codes of normal numbers, and what is derived from them and the scales.
Inputs inputs_of(const Problem& problem, const Inputs& scales = {}) {
  Inputs inputs = scales;
  for (const op::Port& port : problem.ports()) {
    const auto size = static_cast<std::size_t>(port.elements());
    if (port.role == op::Role::input && port.is_generated()) {
      Numbers x = testing::noise(size, static_cast<unsigned>(inputs.size()) + 1);
      std::ranges::transform(x, x.begin(), [&](double y) { return core::round_to(y, port.dtype); });
      inputs[std::string(port.name)] = std::move(x);
    } else if (port.role == op::Role::input) {
      inputs[std::string(port.name)] = testing::derived(problem, inputs, port.name, Numbers(size));
    }
  }
  return inputs;
}

/// AttentionProblem::scales_fit of a case with these inverse scales of q, k and v.
bool fit(double q, double k, double v, double largest_score = 1, std::string_view mode = "fp8_hybrid") {
  const Problem problem{&op::attention_fwd(), attention_fwd_reference(), op::to_params(small()), mode};
  Inputs inputs = inputs_of(problem);
  std::vector<op::Operand> operands = testing::operands_of(problem, inputs);
  for (op::Operand& operand : operands) {
    operand.scale = operand.port == "q" ? q : operand.port == "k" ? k : operand.port == "v" ? v : operand.scale;
  }
  return AttentionProblem(small(), operands).scales_fit(largest_score);
}

TEST(AttentionScales, fit_if_no_order_of_factors_overflows) {
  EXPECT_TRUE(fit(0.01, 0.02, 0.5));
  EXPECT_TRUE(fit(1e30, 1e-30, 1)) << "large and small in turns";
  EXPECT_FALSE(fit(1e17, 1e17, 1)) << "448^2 d q k is up to 8e39";
  EXPECT_TRUE(fit(1e15, 1e15, 1));
  EXPECT_FALSE(fit(1e34, 1e-30, 1)) << "448^2 d q before k";
  EXPECT_FALSE(fit(1, 1, 1e32)) << "448^2 sk v is up to 1e38";
  EXPECT_TRUE(fit(1, 1, 1e30));
}

TEST(AttentionScales, fit_if_no_order_of_factors_loses_bits_that_count) {
  EXPECT_FALSE(fit(1e-20, 1e-20, 1)) << "q k is a subnormal number";
  EXPECT_FALSE(fit(1e-20, 1e-20, 1, 0x1p-24));
  EXPECT_TRUE(fit(1e-20, 1e-20, 1, 0x1p-25)) << "no score is large enough to change a weight";
  EXPECT_FALSE(fit(1, 1, 1e-36)) << "v / 448 is a subnormal number";
  EXPECT_TRUE(fit(1, 1, 1e-35));
  EXPECT_FALSE(fit(1, 1, 1e-36, 0)) << "outputs are not scores";
}

TEST(AttentionScales, of_modes_without_scales_fit) {
  EXPECT_TRUE(fit(1e30, 1e30, 1e-44, kInfinity, "bf16"));
}

/// AttentionGradients::scales_fit with these inverse scales of do and o.
bool gradients_fit(double gradient, double output, std::string_view mode = "fp8_hybrid") {
  const Problem problem = backward(small(), mode);
  Inputs inputs = inputs_of(problem);
  std::vector<op::Operand> operands = testing::operands_of(problem, inputs);
  for (op::Operand& operand : operands) {
    operand.scale = operand.port == "do" ? gradient : operand.port == "o" ? output : operand.scale;
  }
  return AttentionGradients(small(), operands, true).scales_fit();
}

TEST(AttentionScales, of_gradients_fit_likewise) {
  EXPECT_TRUE(gradients_fit(0.01, 0.02));
  EXPECT_FALSE(gradients_fit(1e30, 1)) << "448 57344 sk do is up to 2e38";
  EXPECT_TRUE(gradients_fit(1e28, 1));
  EXPECT_FALSE(gradients_fit(1e-38, 1)) << "do is a subnormal number";
  EXPECT_FALSE(gradients_fit(1e-20, 1e-20)) << "do o is";
  EXPECT_TRUE(gradients_fit(1e-20, 1e-10));
  EXPECT_TRUE(gradients_fit(1e-44, 1e-44, "bf16"));
}

TEST(AttentionScales, that_do_not_fit_leave_elements_undetermined) {
  for (const bool fits : {true, false}) {
    const Problem problem = backward(small());
    Inputs inputs = inputs_of(problem);
    inputs["q_scale_inv"] = inputs["k_scale_inv"] = {fits ? 1.0 : 1e-20};
    const op::Values values = testing::evaluate(problem, inputs);
    model::ModelRequest request;
    request.params = &problem.params;
    request.mode = op::find_mode(problem.mode);
    for (const char* port : {"dq", "dk", "dv", "dp_amax"}) {
      std::vector<float> bound(testing::value_of(values, port).size()), deviation(bound.size());
      tolerance::attention_bwd_error(request, values, port, bound, deviation);
      for (const float b : bound) {
        EXPECT_EQ(static_cast<double>(b) < tolerance::kUndeterminedBound, fits) << port;
      }
    }
  }
}

// Reading facts of rows that dp_amax does not have once ended the program, where a backend declares roundings.
TEST(AmaxOfScoreGradients, has_a_model_whatever_the_run_declares) {
  for (const double cap : {0.0, 2.0}) {
    for (const std::int64_t key_heads : {2, 1}) {
      op::AttentionParams p = small();
      p.softcap = cap;
      p.kv_heads = key_heads;
      const Problem problem = backward(p);
      const op::Values values = testing::evaluate(problem, inputs_of(problem));
      model::ModelRequest request;
      request.params = &problem.params;
      request.mode = op::find_mode(problem.mode);
      request.rounding = {.scores = true, .weights = true, .score_gradients = true, .approximate_tanh = cap != 0};
      const model::ErrorModel model = tolerance::attention_bwd_error_model(request, "dp_amax");
      std::vector<float> bound(1), deviation(1);
      model.element_errors(values, bound, deviation);
      const double largest = testing::value_of(values, "dp_amax")[0];
      EXPECT_GT(bound[0], 0);
      EXPECT_TRUE(std::isfinite(bound[0]));
      EXPECT_GT(deviation[0], 0);
      EXPECT_GT(largest, 0);
      EXPECT_FALSE(model.shared_slope) << "a single number has no slope";
      for (const char* port : {"dq", "dk", "dv", "dq_amax", "dk_amax", "dv_amax"}) {
        const model::ErrorModel other = tolerance::attention_bwd_error_model(request, port);
        ASSERT_TRUE(other.shared_slope) << port;
        EXPECT_TRUE(std::isfinite(other.shared_slope(values))) << port;
      }
    }
  }
}

}  // namespace
}  // namespace numcheck::reference
