// Errors that do not average out: constant inputs, values lost within their own error, sums over runs of one sign.
#include <algorithm>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tolerance/judge.hpp"
#include "tolerance/tracked_model.hpp"

namespace numcheck::tolerance {
namespace {

/// Statistics of a large BF16 output whose error is one rounding.
metric::Statistics clean() {
  metric::Statistics s;
  s.elements = s.finite = 1'000'000;
  s.slope_se = s.slope_predicted_se = 1e-9;
  s.spread_ulps = 100;
  s.signal = 1e6;
  s.flips[2] = {.width = 1, .count = 1'000'000, .found = 20, .allowed = 30};
  return s;
}

model::ErrorModel bf16_model() {
  model::ErrorModel m;
  m.output = core::Dtype::bf16;
  m.kappa = 2;
  return m;
}

const Criterion* find(const std::vector<Criterion>& criteria, std::string_view name) {
  const auto found = std::ranges::find(criteria, name, &Criterion::name);
  return found == criteria.end() ? nullptr : &*found;
}

double slope_limit(const metric::Statistics& s, const model::ErrorModel& m) {
  const std::vector<Criterion> criteria = judge(s, m, {}, {});
  const Criterion* slope = find(criteria, "G3 slope");
  EXPECT_NE(slope, nullptr);
  return slope == nullptr ? 0 : slope->limit;
}

TEST(OneError, has_the_slope_of_one_element) {
  const metric::Statistics s = clean();
  model::ErrorModel m = bf16_model();
  EXPECT_LT(slope_limit(s, m), 1e-7);
  m.one_error = true;
  // A single element passes G2 with |e| <= lambda kappa sqrt(V): no slope gate may demand more of a million equal ones.
  EXPECT_NEAR(slope_limit(s, m), lambda_of(s.elements) * m.kappa / 1e3, 1e-6);
}

TEST(OneError, is_not_a_statistic_of_roundings) {
  metric::Statistics s = clean();
  s.flips[2].found = 1000;
  model::ErrorModel m = bf16_model();
  EXPECT_FALSE(find(judge(s, m, {}, {}), "G4 flips")->ok);
  m.one_error = true;
  EXPECT_EQ(find(judge(s, m, {}, {}), "G4 flips"), nullptr);
  EXPECT_NE(find(judge(s, m, {}, {}), "G4 element"), nullptr) << "what holds for one element still judges";
}

TEST(LostAlike, a_slope_of_minus_one_is_fine_where_values_are_smaller_than_their_errors) {
  metric::Statistics s = clean();
  model::ErrorModel m = bf16_model();
  m.lost_alike = true;
  EXPECT_NEAR(slope_limit(s, m), 4e-6, 1e-7) << "kappa^2 / signal";
  s.signal = 0.5;
  s.slope = -1;
  EXPECT_TRUE(find(judge(s, m, {}, {}), "G3 slope")->ok);
  s.signal = 100;
  EXPECT_FALSE(find(judge(s, m, {}, {}), "G3 slope")->ok) << "values ten times their errors are not lost";
}

TEST(Order, runs_of_one_sign_widen_sums_only) {
  const auto widened = [](data::Pattern pattern, double terms) {
    model::ModelRequest request;
    request.second_pattern = pattern;
    model::ErrorModel model;
    model.reduction = terms;
    widen_for_order(request, model);
    return model.var_magnitude;
  };
  const data::Pattern runs{data::Order::structured, 0};
  EXPECT_NEAR(widened(runs, 30), 0.06 / 30, 1e-12);
  EXPECT_EQ(widened(runs, 1), 0) << "no sum";
  EXPECT_EQ(widened({data::Order::random, 0}, 30), 0);
  EXPECT_EQ(widened({data::Order::structured, 1}, 30), 0) << "all of one sign: the chain is the worst order";
}

}  // namespace
}  // namespace numcheck::tolerance
