// MXFP8 outputs by hand: scales at their boundaries, codes, and what an error of the results leaves undecided.
#include "reference/mxfp8.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "activation_problem.hpp"
#include "reference/activation_declared.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

using core::Dtype;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

constexpr op::Mxfp8Names kNames{"q", "s", "qc", "sc"};

/// The outputs of one row of results with these bounds.
op::Values row(const std::vector<Tracked>& results, Dtype first = Dtype::fp32, Dtype codes = Dtype::fp8_e4m3) {
  TrackedOutput out("y", results.size(), false);
  for (std::size_t i = 0; i < results.size(); ++i) {
    out.set(i, results[i]);
  }
  return mxfp8_outputs(std::move(out).take(),
                       {kNames, 1, static_cast<std::int64_t>(results.size()), codes, first, "rowwise"});
}

std::vector<double> values(const op::Values& outputs, std::size_t output = 0) {
  return testing::value_of(outputs, output);
}

/// Exponent of the scale of a block whose largest result is that.
int exponent_for(double amax, Dtype codes) {
  return static_cast<int>(std::log2(values(row({amax}, Dtype::fp32, codes), 1)[0]));
}

TEST(Mxfp8, codes_and_scale_of_a_block) {
  // 17 lies between 16 and 18, where even codes win.
  const op::Values y = row({448, 1, -3, 17, 0x1p-9, 0x1p-10});
  EXPECT_EQ(values(y, 1), std::vector<double>{1});
  EXPECT_EQ(values(y), (std::vector<double>{448, 1, -3, 16, 0x1p-9, 0}));
  EXPECT_EQ(y.outputs[0].magnitude[3], 0) << "the code is known";
  EXPECT_EQ(y.outputs[0].ideal[3], 17);
}

TEST(Mxfp8, the_scale_is_rounded_up) {
  for (const auto& [codes, most] : {std::pair(Dtype::fp8_e4m3, 448.0F), std::pair(Dtype::fp8_e5m2, 57344.0F)}) {
    EXPECT_EQ(exponent_for(static_cast<double>(most), codes), 0);
    EXPECT_EQ(exponent_for(static_cast<double>(std::nextafter(most, 1e9F)), codes), 1);
    EXPECT_EQ(exponent_for(static_cast<double>(std::nextafter(most, 0.0F)), codes), 0);
    EXPECT_EQ(exponent_for(static_cast<double>(most) / 2, codes), -1);
    EXPECT_EQ(exponent_for(0x1p-140, codes), -127);
  }
}

TEST(Mxfp8, zeros_nan_and_infinities) {
  EXPECT_EQ(values(row({0.0, -0.0}), 1), std::vector<double>{0x1p-127});
  const op::Values with_nan = row({kNan, 448});
  EXPECT_TRUE(std::isnan(values(with_nan)[0]));
  EXPECT_EQ(values(with_nan)[1], 448);
  EXPECT_EQ(values(with_nan, 1), std::vector<double>{1}) << "NaN does not reach the scale";
  EXPECT_EQ(values(row({kNan}), 1), std::vector<double>{0x1p-127});
  const op::Values infinite = row({-kInfinity, 0x1p127, 1});
  EXPECT_EQ(values(infinite, 1), std::vector<double>{0x1p127});
  EXPECT_EQ(values(infinite), (std::vector<double>{-448 * 0x1p127, 0x1p127, 0}));
}

TEST(Mxfp8, results_are_rounded_to_the_inputs_format_first) {
  const double above_a_tie = 1.0625 + 0x1p-12;  // the codes are 1 and 1.125; in BF16 it is the tie itself
  EXPECT_EQ(values(row({448, above_a_tie}))[1], 1.125);
  const op::Values y = row({448, above_a_tie}, Dtype::bf16);
  EXPECT_EQ(values(y)[1], 1);
  EXPECT_EQ(y.outputs[0].ideal[1], above_a_tie);
  EXPECT_NE(y.outputs[0].ideal_note.find("rounded to bf16 first"), std::string::npos);
  EXPECT_EQ(values(row({65520, 1}, Dtype::fp16), 1)[0], 0x1p127) << "it is infinite in FP16";
}

TEST(Mxfp8, an_error_that_reaches_over_a_tie_leaves_two_codes) {
  const op::Values y = row({448, {1.0625 + 0x1p-20, 0x1p-19, 0}, {1.0625 + 0x1p-20, 0x1p-21, 0}});
  EXPECT_EQ(values(y)[1], 1.125);
  EXPECT_EQ(y.outputs[0].magnitude[1], 0.125F);
  EXPECT_EQ(y.outputs[0].magnitude[2], 0);
}

TEST(Mxfp8, an_error_of_the_largest_leaves_two_scales) {
  const op::Values y = row({{448, 0x1p-10, 0}, 17, 1});
  EXPECT_EQ(values(y, 1), std::vector<double>{1});
  EXPECT_EQ(y.outputs[1].magnitude[0], 1) << "2 is as good";
  EXPECT_EQ(y.outputs[0].magnitude[1], 0) << "8.5 is 8, a tie, and 17 is 16, another one: both are the number 16";
  EXPECT_EQ(y.outputs[0].magnitude[2], 0);
  const op::Values finer = row({{448, 0x1p-10, 0}, 0x1p-9});
  EXPECT_EQ(finer.outputs[0].magnitude[1], 0x1p-9F) << "half of the smallest code of the larger scale";
}

TEST(Mxfp8, a_result_without_a_bound_leaves_its_block_open) {
  const op::Values y = row({{1, kNan, kNan}, 2, kNan});
  constexpr float kUndetermined = 1e38F;
  EXPECT_GT(y.outputs[0].magnitude[0], kUndetermined);
  EXPECT_GT(y.outputs[0].magnitude[1], kUndetermined);
  EXPECT_GT(y.outputs[1].magnitude[0], kUndetermined);
  EXPECT_TRUE(std::isnan(values(y)[2]));
}

TEST(Mxfp8, both_layouts_have_blocks_of_their_own) {
  op::ActivationParams p;
  p.kind = "relu";
  p.rows = 33;
  p.hidden = 34;
  p.output = "mxfp8_e4m3";
  p.layout = "both";
  std::vector<double> x(33 * 34, 1.0);
  x[0] = 448;
  x[32 * 34 + 33] = 896;
  const op::Values y =
      testing::run_reference(op::activation_fwd(), activation_fwd_reference(), op::to_params(p), {{"x", x}});
  ASSERT_EQ(y.outputs.size(), 4U);
  EXPECT_EQ(y.outputs[0].port, "y");
  EXPECT_EQ(y.outputs[3].port, "y_columnwise_scale_inv");
  const std::vector<double> along_rows = values(y, 1);
  ASSERT_EQ(along_rows.size(), 33U * 2);
  EXPECT_EQ(along_rows[0], 1);
  EXPECT_EQ(along_rows[1], 0x1p-8);  // 2^8 is a code
  EXPECT_EQ(along_rows[32 * 2 + 1], 2);
  const std::vector<double> along_columns = values(y, 3);
  ASSERT_EQ(along_columns.size(), 2U * 34);
  EXPECT_EQ(along_columns[0], 1);
  EXPECT_EQ(along_columns[34], 0x1p-8);
  EXPECT_EQ(along_columns[34 + 33], 2);
}

TEST(Mxfp8, a_layout_belongs_to_such_outputs_only) {
  const op::Mode& mode = *op::find_mode("bf16");
  op::ActivationParams p;
  p.layout = "both";
  for (const char* output : {"default", "fp8_e4m3"}) {
    p.output = output;
    const std::vector<std::string> mistakes = op::activation_bwd().check(op::to_params(p), mode);
    ASSERT_EQ(mistakes.size(), 1U);
    EXPECT_EQ(mistakes[0],
              "activation_bwd: layout applies to the outputs mxfp8_e4m3 and mxfp8_e5m2 only, not to " + p.output);
  }
  p.output = "mxfp8_e5m2";
  EXPECT_TRUE(op::activation_bwd().check(op::to_params(p), mode).empty());
}

TEST(Mxfp8, ports_of_the_layouts) {
  op::ActivationParams p;
  p.kind = "swiglu";
  p.rows = 70;
  p.hidden = 50;
  p.output = "mxfp8_e5m2";
  p.layout = "columnwise";
  const std::vector<op::Port> ports = op::activation_bwd().ports(op::to_params(p), *op::find_mode("fp16"));
  ASSERT_EQ(ports.size(), 4U) << "no scale to give, no amax";
  EXPECT_EQ(ports[2].name, "dx_columnwise");
  EXPECT_EQ(ports[2].dtype, Dtype::fp8_e5m2);
  EXPECT_EQ(ports[2].scaled_by, "dx_columnwise_scale_inv");
  EXPECT_EQ(ports[2].block_rows, 32);
  EXPECT_EQ(ports[2].block_cols, 1);
  EXPECT_EQ(ports[3].dtype, Dtype::e8m0);
  EXPECT_EQ(ports[3].rows, 3);
  EXPECT_EQ(ports[3].cols, 100);
}

TEST(Mxfp8, values_only_are_exact_results) {
  op::ActivationParams p;
  p.kind = "relu";
  p.output = "mxfp8_e5m2";
  const op::Values y = testing::forward(p, {17, 57344}, true);
  EXPECT_EQ(values(y), (std::vector<double>{17, 57344}));
  EXPECT_TRUE(y.outputs[0].magnitude.empty());
}

// What a case's `sigmoid` chooses between.
TEST(Mxfp8, gradients_of_swiglu_may_use_a_fast_sigmoid) {
  using declared::Sigmoid;
  const Clamp clamp{7, 1.7, 1};
  const auto bound = [&](double x, Sigmoid sigmoid) {
    return declared::derivative<Tracked>(op::Activation::silu, x, clamp, sigmoid).b;
  };
  EXPECT_GT(bound(-5, Sigmoid::fast), 2 * bound(-5, Sigmoid::accurate));
  EXPECT_LT(bound(-5, Sigmoid::fast), 10 * bound(-5, Sigmoid::accurate));
}

}  // namespace
}  // namespace numcheck::reference
