// What a cast lost: statistics of codes and scales that are spelled out.
#include "reference/quantise_statistics.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::operands_of;
using testing::Problem;
using Numbers = std::vector<double>;
using Outputs = std::map<std::string, Numbers, std::less<>>;

/// Statistics by "port: name".
std::map<std::string, double> statistics_of(const op::QuantizeParams& p, const Numbers& x, const Outputs& outputs) {
  const Problem problem{&op::quantize(), quantize_reference(), op::to_params(p), "fp32"};
  const testing::Inputs inputs = {{"x", x}};
  std::vector<op::Delivered> delivered;
  for (const auto& [name, values] : outputs) {
    delivered.push_back({name, values, op::port_named(problem.ports(), name).dtype, 1, {}});
  }
  std::map<std::string, double> found;
  for (const op::Finding& finding :
       quantise_statistics({&problem.params, operands_of(problem, inputs), nullptr, delivered, nullptr})) {
    EXPECT_TRUE(std::isinf(finding.limit)) << finding.name << " is no gate";
    found[finding.port + ": " + finding.name] = finding.measured;
  }
  return found;
}

TEST(QuantiseStatistics, of_a_tensor) {
  const op::QuantizeParams p{.rows = 2, .cols = 3, .scale = 2};
  const Numbers x = {1, 1e-9, 0, -300, std::nan(""), 4}, codes = {2, 0, 0, -448, std::nan(""), 8};
  const auto found = statistics_of(p, x, {{"q", codes}, {"scale_inv", {0.5}}});
  EXPECT_DOUBLE_EQ(found.at("q: underflow"), 1.0 / 6);
  EXPECT_DOUBLE_EQ(found.at("q: overflow"), 1.0 / 6) << "300 > 448 / 2";
  EXPECT_DOUBLE_EQ(found.at("q: saturated codes"), 1.0 / 6);
  const double error = 76.0 * 76 + 1e-18;
  EXPECT_DOUBLE_EQ(found.at("q: mse"), error / 5) << "NaN does not count";
  EXPECT_DOUBLE_EQ(found.at("q: sqnr"), 10 * std::log10((300.0 * 300 + 17 + 1e-18) / error));
  EXPECT_FALSE(found.contains("q: dead blocks"));
}

TEST(QuantiseStatistics, of_blocks_in_both_layouts) {
  op::QuantizeParams p{.rows = 2, .cols = 129, .layout = "both", .recipe = "block_1x128"};
  Numbers x(258), q(258), q_t(258), scales_t(129, 0.25);
  x[0] = 1;         // row 0, block 0: alive row-wise, dead column-wise
  x[128] = 0.0625;  // row 0, block 1: dead row-wise, alive column-wise
  q[0] = 4;
  q_t[128 * 2] = 0.25;  // row 128 of the transposed codes
  const auto found =
      statistics_of(p, x, {{"q", q}, {"scale_inv", {0.25, 1, 2, 1}}, {"q_t", q_t}, {"scale_inv_t", scales_t}});
  EXPECT_DOUBLE_EQ(found.at("q: dead blocks"), 0.5);
  EXPECT_DOUBLE_EQ(found.at("q_t: dead blocks"), 0.5);
  EXPECT_DOUBLE_EQ(found.at("q: underflow"), 1.0 / 258);
  EXPECT_DOUBLE_EQ(found.at("q: mse"), 0.0625 * 0.0625 / 258);
  EXPECT_DOUBLE_EQ(found.at("q_t: mse"), 1.0 / 258);
  EXPECT_EQ(found.at("scale_inv: smallest scale_inv"), 0.25);
  EXPECT_EQ(found.at("scale_inv: largest scale_inv"), 2);
  EXPECT_EQ(found.at("scale_inv_t: largest scale_inv"), 0.25);
}

TEST(QuantiseStatistics, some_rows_at_a_time_are_the_same) {
  const op::QuantizeParams all{.rows = 70, .cols = 64, .recipe = "mxfp8"};
  const Problem problem{&op::quantize(), quantize_reference(), op::to_params(all), "fp32"};
  const testing::Inputs inputs = {{"x", testing::noise(70 * 64, 5)}};
  const op::Values values = testing::evaluate(problem, inputs);
  const Numbers q = testing::value_of(values, "q"), scales = testing::value_of(values, "scale_inv");
  const auto whole = quantise_row_statistics(problem.params, *op::find_mode("fp32"));
  const auto parts = quantise_row_statistics(problem.params, *op::find_mode("fp32"));
  const auto add = [&](op::RowFindings& to, std::size_t first, std::size_t count) {
    const op::Params some =
        op::to_params(op::QuantizeParams{.rows = static_cast<std::int64_t>(count), .cols = 64, .recipe = "mxfp8"});
    const std::vector<op::Operand> x = {
        {"x", inputs.at("x").data() + first * 64, 1, static_cast<std::int64_t>(count), 64, 1, core::Dtype::fp32}};
    const std::vector<op::Delivered> delivered = {
        {"q", std::span(q).subspan(first * 64, count * 64), core::Dtype::fp8_e4m3, 1, {}},
        {"scale_inv", std::span(scales).subspan(first * 2, count * 2), core::Dtype::e8m0, 1, {}}};
    to.add({&some, x, nullptr, delivered, nullptr}, static_cast<std::int64_t>(first));
  };
  add(*whole, 0, 70);
  add(*parts, 40, 30);
  add(*parts, 0, 40);
  const std::vector<op::Finding> a = whole->result(nullptr), b = parts->result(nullptr);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].measured, b[i].measured) << a[i].name;
  }
}

}  // namespace
}  // namespace numcheck::reference
