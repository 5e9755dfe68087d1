// Errors that several outputs share, and errors of terms that cancel: the model of GEMM, the gates, the statistics.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/dtype.hpp"
#include "op/gemm.hpp"
#include "tests/unit/metric/problem.hpp"
#include "tolerance/gemm_model.hpp"
#include "tolerance/judge.hpp"
#include "tolerance/output_reduction.hpp"

namespace numcheck::tolerance {
namespace {

struct Setting {
  std::string_view mode = "tf32";
  op::GemmParams p;
  model::PrecisionClass expected = model::PrecisionClass::tf32_rne;
  model::ModelRequest more;  ///< maxima and patterns
};

model::ErrorModel model_of(const Setting& s) {
  const op::Params params = op::to_params(s.p);
  model::ModelRequest request = s.more;
  request.params = &params;
  request.mode = op::find_mode(s.mode);
  request.expected = s.expected;
  return gemm_error_model(request, "d");
}

op::GemmParams with_k(std::int64_t k) {
  op::GemmParams p;
  p.m = p.n = 64;
  p.k = k;
  return p;
}

TEST(GemmModel, sums_that_are_cancelled_keep_their_errors) {
  Setting s{.mode = "tf32", .p = with_k(64), .expected = model::PrecisionClass::tf32_rne};
  const model::ErrorModel plain = model_of(s);
  s.more.first_pattern.coherence = s.more.second_pattern.coherence = 1;
  EXPECT_EQ(model_of(s).var_magnitude, 0) << "there is nothing that cancels";
  EXPECT_EQ(model_of(s).slope_magnitude, 0);
  s.p.bias = true;
  const model::ErrorModel cancelled = model_of(s);
  const double addend = 0x1p-48 / 3;  // of the bias
  EXPECT_DOUBLE_EQ(cancelled.var_magnitude, plain.var_value + plain.var_coherent + addend);
  EXPECT_DOUBLE_EQ(cancelled.slope_magnitude, 1.5 * std::abs(plain.slope_low + plain.slope_coherent) + 0x1p-24);
  s.more.first_pattern.coherence = 0.5;
  EXPECT_NEAR(model_of(s).var_magnitude, (plain.var_value + plain.var_coherent) / 4 + addend, 1e-20);
  s.more.first_pattern.coherence = 0.12;  // r^2 k < 1
  EXPECT_EQ(model_of(s).slope_magnitude, 0) << "a mean within the spread";
  EXPECT_DOUBLE_EQ(model_of(s).var_magnitude, addend);
}

TEST(GemmModel, roundings_that_all_outputs_share_show_as_a_slope) {
  Setting s{.mode = "fp32", .p = with_k(64), .expected = model::PrecisionClass::fp32};
  EXPECT_EQ(model_of(s).slope_slack, 0);
  s.p.beta = 1;
  EXPECT_EQ(model_of(s).slope_slack, 0x1p-24);
  s.p.bias = true;
  EXPECT_EQ(model_of(s).slope_slack, 2 * 0x1p-24);
  s.p = with_k(64);
  s.more.second_pattern.order = data::Order::constant;
  s.more.second_max = 0.25;
  EXPECT_EQ(model_of(s).slope_slack, 0) << "products by a power of two are rounded without bias";
  s.more.second_max = static_cast<float>(0.1);
  EXPECT_EQ(model_of(s).slope_slack, 0x1p-24);
}

TEST(GemmModel, knows_which_errors_are_one) {
  Setting s{.mode = "tf32", .p = with_k(64), .expected = model::PrecisionClass::tf32_rne};
  EXPECT_FALSE(model_of(s).rows_agree || model_of(s).columns_agree);
  s.more.first_pattern.coherence = 1;
  EXPECT_TRUE(model_of(s).rows_agree) << "rounding errors of B add up alike in all rows";
  EXPECT_FALSE(model_of(s).columns_agree);
  s.expected = model::PrecisionClass::fp32;
  EXPECT_FALSE(model_of(s).rows_agree) << "nothing is rounded";
  s.more.second_pattern.order = data::Order::constant;
  EXPECT_TRUE(model_of(s).columns_agree);
}

TEST(OutputReduction, rounds_sums_that_may_be_cancelled) {
  Setting s{.mode = "bf16", .p = with_k(64), .expected = model::PrecisionClass::native, .more = {}};
  s.p.bias = true;
  const model::ErrorModel plain = model_of(s);
  const model::ErrorModel sliced = with_output_reduction(plain, 6, 3);
  EXPECT_EQ(sliced.var_magnitude, plain.var_magnitude);
  EXPECT_NEAR(sliced.var_value - plain.var_value, 0.18 * 0x1p-16 * 3, 1e-9);
  const double spacing = 3 * core::dtype_info(core::Dtype::bf16).min_subnormal;
  EXPECT_DOUBLE_EQ(sliced.var_absolute - plain.var_absolute, 7 * spacing * spacing / 12)
      << "seven roundings of small numbers";
  EXPECT_DOUBLE_EQ(with_output_reduction(plain, 6, 0.1).var_absolute - plain.var_absolute,
                   7 * spacing * spacing / 9 / 12);
  s.more.first_pattern.coherence = s.more.second_pattern.coherence = 1;
  const model::ErrorModel coherent = model_of(s);
  const double difference = with_output_reduction(coherent, 6, 1).var_magnitude - coherent.var_magnitude;
  EXPECT_NEAR(difference, 0.18 * 0x1p-16 * 3, 0.02 * 0.18 * 0x1p-16 * 3);  // operands may be enlarged by 2^-9
}

constexpr double kNone = std::numeric_limits<double>::infinity();  // spread of what is not added

TEST(RoundedPart, adds_one_rounding_to_the_outputs_format) {
  Setting s{.mode = "fp16", .p = with_k(64), .expected = model::PrecisionClass::native, .more = {}};
  s.p.beta = 1;
  const model::ErrorModel plain = model_of(s);
  const model::ErrorModel rounded = with_rounded_part(plain, 1, 4, kNone);
  EXPECT_DOUBLE_EQ(rounded.bound_magnitude - plain.bound_magnitude, 0x1p-11);
  EXPECT_DOUBLE_EQ(rounded.bound_absolute - plain.bound_absolute, 0x1p-25);
  EXPECT_NEAR(rounded.var_second - plain.var_second, 0.18 * 0x1p-22, 1e-12);
  EXPECT_NEAR(rounded.var_value - plain.var_value, 0.18 * 0x1p-22, 1e-12);
  EXPECT_NEAR(rounded.var_absolute - plain.var_absolute, 4 * 0.18 * 0x1p-22, 1e-12) << "of what is added";
  EXPECT_EQ(rounded.overflow_magnitude, plain.overflow_magnitude) << "an overflow in between is wrong";
  EXPECT_EQ(rounded.kappa, plain.kappa) << "no limit moves";
  EXPECT_NEAR(with_rounded_part(plain, 2, 0, kNone).bound_magnitude - plain.bound_magnitude, 0x1p-10, 1e-12);
}

TEST(RoundedPart, what_hardly_varies_is_added_with_the_same_error) {
  Setting s{.mode = "bf16", .p = with_k(64), .expected = model::PrecisionClass::native, .more = {}};
  s.p.beta = 1;
  const model::ErrorModel plain = model_of(s);
  const auto slack = [&plain](double spread) {
    return with_rounded_part(plain, 1, 4, spread).slope_slack - plain.slope_slack;
  };
  EXPECT_DOUBLE_EQ(slack(0), 0x1p-8) << "a constant";
  EXPECT_GT(slack(0.1), 0.8 * 0x1p-8);
  EXPECT_LT(slack(1), 1e-8 * 0x1p-8) << "spread over an ulp, errors cancel";
  EXPECT_EQ(slack(kNone), 0);
}

TEST(ApproximateTanh, errs_by_half_of_its_error_times_z) {
  Setting s{.mode = "fp32", .p = with_k(64), .expected = model::PrecisionClass::fp32, .more = {}};
  s.p.epilogue = "gelu";
  const model::ErrorModel plain = model_of(s);
  const model::ErrorModel loose = with_approximate_tanh(plain);
  EXPECT_DOUBLE_EQ(loose.bound_magnitude - plain.bound_magnitude, 4e-6);
  EXPECT_EQ(loose.bound_value, plain.bound_value);
  EXPECT_EQ(loose.kappa, plain.kappa);
}

/// Statistics of a large clean output.
metric::Statistics clean() {
  metric::Statistics s;
  s.elements = s.finite = 1'000'000;
  s.slope_se = s.slope_predicted_se = 1e-9;
  return s;
}

/// The gate among those that are judged; null if it is not.
const Criterion* find(const std::vector<Criterion>& criteria, std::string_view name) {
  const auto found = std::ranges::find(criteria, name, &Criterion::name);
  return found == criteria.end() ? nullptr : &*found;
}

bool judged(std::string_view gate, const metric::Statistics& s) {
  return find(judge(s, {}, {}, {}), gate) != nullptr;
}

bool holds(std::string_view gate, const metric::Statistics& s, const model::ErrorModel& model) {
  const std::vector<Criterion> criteria = judge(s, model, {}, {});
  const Criterion* found = find(criteria, gate);
  EXPECT_NE(found, nullptr) << gate;
  return found != nullptr && found->ok;
}

TEST(Judge, rms_needs_independent_errors) {
  metric::Statistics s = clean();
  s.elements = s.finite = 80;
  s.copies = 10;
  EXPECT_TRUE(judged("G2 rms", s));
  s.copies = 10.1;
  EXPECT_FALSE(judged("G2 rms", s)) << "fewer than 8";
  EXPECT_TRUE(judged("G2 max", s));
}

TEST(Judge, slope_of_a_cancelled_sum) {
  metric::Statistics s = clean();
  s.signal = 1e10;  // relative errors of 1e-5
  s.slope = 0.9e-5;
  model::ErrorModel m;
  m.var_magnitude = 4e-12;
  m.slope_magnitude = 2e-6;  // sum w A^2 <= N / 4e-12, so 1e-5 at most
  EXPECT_TRUE(holds("G3 slope", s, m));
  s.slope = -s.slope;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "of either sign";
  s.slope = 1.1e-5;
  EXPECT_FALSE(holds("G3 slope", s, m));
  s.slope = 0.9e-5;
  m.slope_magnitude = 0;
  EXPECT_FALSE(holds("G3 slope", s, m)) << "nothing cancels";
}

TEST(Compare, counts_the_outputs_that_share_an_error) {
  metric::Problem p = metric::make_problem(core::Dtype::fp32, {.batch = 2, .rows = 30, .cols = 12}, 1e-6, 3);
  EXPECT_EQ(metric::compare(p.input()).copies, 1);
  p.model.rows_agree = true;
  EXPECT_EQ(metric::compare(p.input()).copies, 30);
  p.model.columns_agree = true;
  EXPECT_EQ(metric::compare(p.input()).copies, 30) << "each error has a part of its row and one of its column";
  p.model.rows_agree = false;
  EXPECT_EQ(metric::compare(p.input()).copies, 12);
}

TEST(Compare, counts_them_in_a_sample) {
  metric::Problem p = metric::make_problem(core::Dtype::fp32, {.batch = 2, .rows = 30, .cols = 12}, 1e-6, 3);
  p.sample.indices = {0, 1, 2, 12, 24, 360, 372};  // columns 0 1 2 0 0 and, of the second matrix, 0 0
  for (auto* array : {&p.magnitude, &p.deviation}) {
    array->resize(p.sample.indices.size());
  }
  p.expected.resize(p.sample.indices.size());
  EXPECT_EQ(metric::compare(p.input()).copies, 1);
  p.model.rows_agree = true;
  EXPECT_EQ(metric::compare(p.input()).copies, 7.0 / 4);
  p.model.columns_agree = true;
  EXPECT_EQ(metric::compare(p.input()).copies, 7.0 / 4);
  p.model.rows_agree = false;
  EXPECT_EQ(metric::compare(p.input()).copies, 7.0 / 5);
}

TEST(Compare, signal_is_the_mean_square_of_outputs_against_their_errors) {
  metric::Problem p = metric::make_problem(core::Dtype::fp32, {.batch = 1, .rows = 16, .cols = 64}, 1e-6, 3);
  p.model = {};
  p.model.var_value = 0x1p-20;  // V = 2^-20 y^2 but for the output's own rounding
  EXPECT_NEAR(metric::compare(p.input()).signal, 0x1p20, 1);
}

}  // namespace
}  // namespace numcheck::tolerance
