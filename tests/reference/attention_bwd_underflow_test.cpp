// Attention's gradients whose factors are so small that FP32 does not hold them.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "attention_bwd_fit.hpp"
#include "attention_bwd_kernel.hpp"
#include "op/attention_bwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::Fit;
using testing::fit_of;
using testing::Gradients;
using testing::Inputs;
using testing::inputs_of;
using testing::Kernel;
using testing::Problem;
using testing::request_of;

/// Weights down to 2^-150 and gradients below 1, as exponentials and products that flush subnormal numbers lose them. What is
/// lost before 1 - dropout divides it counts ten times.
TEST(AttentionBwdUnderflow, of_flushed_results_is_bounded_wherever_dropout_divides) {
  Kernel kernel;
  kernel.p.heads = 8;
  kernel.p.sq = 1;
  kernel.p.sk = 1000;
  kernel.p.d = 32;
  kernel.p.layout = "bhsd";
  kernel.p.dropout = 0.9;
  kernel.flushes = true;
  double worst = 0;
  for (const char* mode : {"bf16", "fp32"}) {
    for (const double scale : {0.0, 4.0}) {
      kernel.mode = mode;
      kernel.p.scale = scale;
      const Problem problem{&op::attention_bwd(), attention_bwd_reference(), op::to_params(kernel.p), mode};
      Inputs inputs =
          inputs_of(problem, kernel.format(), {"scores", scale == 0 ? 30.0 : 30 / std::sqrt(32.0) / scale, 0, 0.1});
      const op::Values values = testing::evaluate(problem, inputs);
      for (const int variant : {0, 1, 2, 3}) {
        kernel.drops_last = variant == 1;
        kernel.drops_sums = variant >= 2;
        kernel.scale_first = variant == 3;
        const Gradients got = kernel.run(inputs);
        for (const char* port : {"dq", "dk", "dv"}) {
          const Fit fit = fit_of(values, port, got.find(port)->second, request_of(problem, mode));
          EXPECT_LE(fit.worst, 1) << mode << " " << port << " " << scale << " " << variant;
          worst = std::max(worst, port == std::string("dk") ? fit.worst : 0);
        }
      }
    }
  }
  EXPECT_GE(worst, 0.4) << "the bound is too large to see more";
}

/// Each addition to a subnormal sum is rounded to 2^-149, however small the terms are, and operands to 2^-136 in TF32.
TEST(AttentionBwdUnderflow, of_subnormal_sums_is_predicted) {
  Kernel kernel;
  kernel.p.sq = 150;
  kernel.p.sk = 40;
  kernel.p.d = 32;
  kernel.p.layout = "bhsd";
  for (const auto& [mode, size] : {std::pair("fp32", 0x1p-143), std::pair("tf32", 0x1p-135)}) {
    kernel.mode = mode;
    const Problem problem{&op::attention_bwd(), attention_bwd_reference(), op::to_params(kernel.p), mode};
    const Inputs inputs = inputs_of(problem, kernel.format(), {"tiny gradients", 1, 0, size});
    const op::Values values = testing::evaluate(problem, inputs);
    const Fit fit = fit_of(values, "dv", kernel.run(inputs).find("dv")->second, request_of(problem, mode));
    EXPECT_LE(fit.worst, 1) << mode;
    EXPECT_LE(fit.rms, 1.3) << mode;
    EXPECT_GE(fit.rms, 0.1) << mode << ": the prediction is too large to see a fault";
  }
}

}  // namespace
}  // namespace numcheck::reference
