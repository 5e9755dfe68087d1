// Findings on the rows of a normalisation's output: planted mistakes fail and are named, rounding noise does not.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "norm_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::evaluate;
using testing::Inputs;
using testing::noise;
using testing::Problem;
using testing::problem_of;
using testing::rows_of;
using Numbers = std::vector<double>;

constexpr std::size_t kRows = 64;
constexpr std::size_t kColumns = 193;

/// Rows whose variances lie around epsilon, 2^-14 to 4, and whose means are up to 8 of their spreads.
Inputs rows_of_many_scales() {
  Numbers x = noise(kRows * kColumns, 1);
  for (std::size_t i = 0; i < kRows; ++i) {
    const double spread = std::exp2(-7 + 8 * static_cast<double>(i) / kRows);
    const double mean = static_cast<double>(i % 3) * 4;
    for (std::size_t j = 0; j < kColumns; ++j) {
      double& each = x[i * kColumns + j];
      each = static_cast<double>(static_cast<float>(spread * (each + mean)));
    }
  }
  return {{"x", x}, {"gamma", noise(kColumns, 2, 0.5, 1)}, {"beta", noise(kColumns, 3)}};
}

Problem problem(bool centred, std::string_view mode = "fp32", std::int64_t rows = kRows) {
  return centred ? problem_of(rows_of<op::LayernormFwdParams>(rows, kColumns), mode)
                 : problem_of(rows_of<op::RmsnormFwdParams>(rows, kColumns), mode);
}

/// y of a device that scales row i by rsigma(sum of squares, i), in FP32 from there on.
using Rsigma = std::function<double(double squares, std::size_t row)>;

Numbers delivered(const Inputs& inputs, bool centred, const Rsigma& rsigma) {
  const Numbers& x = inputs.at("x");
  Numbers y(x.size());
  for (std::size_t i = 0; i < x.size() / kColumns; ++i) {
    float mean = 0;
    for (std::size_t j = 0; centred && j < kColumns; ++j) {
      mean += static_cast<float>(x[i * kColumns + j]) / static_cast<float>(kColumns);
    }
    double squares = 0;
    for (std::size_t j = 0; j < kColumns; ++j) {
      const double distance = x[i * kColumns + j] - static_cast<double>(mean);
      squares += distance * distance;
    }
    const auto scale = static_cast<float>(rsigma(squares, i));
    for (std::size_t j = 0; j < kColumns; ++j) {
      const float xh = (static_cast<float>(x[i * kColumns + j]) - mean) * scale;
      const float beta = centred ? static_cast<float>(inputs.at("beta")[j]) : 0.0F;
      y[i * kColumns + j] = static_cast<double>(xh * static_cast<float>(inputs.at("gamma")[j]) + beta);
    }
  }
  return y;
}

double correct(double squares, std::size_t /*row*/) {
  return 1 / std::sqrt(squares / kColumns + 1e-5);
}

std::vector<op::Finding> findings_of(const Problem& p, const Inputs& inputs, const Numbers& y,
                                     core::Dtype format = core::Dtype::fp32) {
  const op::Values expected = evaluate(p, inputs);
  const std::vector<op::Operand> operands = testing::operands_of(p, inputs);
  const std::vector<op::Delivered> outputs = {{"y", y, format}};
  return p.reference.findings({&p.params, operands, &expected, outputs});
}

std::vector<op::Finding> findings_of(bool centred, const Rsigma& rsigma) {
  const Inputs inputs = rows_of_many_scales();
  return findings_of(problem(centred), inputs, delivered(inputs, centred, rsigma));
}

bool says(const op::Finding& finding, std::string_view words) {
  return finding.text.find(words) != std::string::npos;
}

class NormFindings : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Norms, NormFindings, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "layernorm" : "rmsnorm"; });

TEST_P(NormFindings, rounding_noise_is_clean) {
  const std::vector<op::Finding> found = findings_of(GetParam(), &correct);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, "row scale error");
  EXPECT_LE(found[0].measured, found[0].limit);
  EXPECT_LT(found[0].limit, 5e-6);
  EXPECT_EQ(found[0].text, "mean of the 64 rows' relative scale errors");
  EXPECT_EQ(found[1].name, "row regression: variance");
  EXPECT_LT(std::fabs(found[1].measured), 1e-6);
  EXPECT_EQ(found[2].name, "row regression: epsilon");
  EXPECT_LT(std::fabs(found[2].measured), 1e-5 * 1e-6);
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_EQ(found[i].limit, std::numeric_limits<double>::infinity()) << "no gate";
  }
}

TEST_P(NormFindings, noise_of_16_bit_outputs_is_clean) {
  const Inputs inputs = rows_of_many_scales();
  for (const auto& [mode, format] : {std::pair{"bf16", core::Dtype::bf16}, {"fp16", core::Dtype::fp16}}) {
    Numbers y = delivered(inputs, GetParam(), &correct);
    std::ranges::for_each(y, [format](double& each) { each = core::round_to(each, format); });
    const op::Finding clean = findings_of(problem(GetParam(), mode), inputs, y, format).at(0);
    EXPECT_LE(clean.measured, clean.limit) << mode;
    EXPECT_EQ(clean.text, "mean of the 64 rows' relative scale errors");
    y = delivered(inputs, GetParam(), [](double squares, std::size_t row) { return 1.01 * correct(squares, row); });
    std::ranges::for_each(y, [format](double& each) { each = core::round_to(each, format); });
    const op::Finding off = findings_of(problem(GetParam(), mode), inputs, y, format).at(0);
    EXPECT_GT(off.measured, off.limit) << mode;
    EXPECT_NEAR(off.measured, 0.01, 0.002) << mode;
  }
}

// Elements at a tie may be rounded alike in all of them: their errors do not average out.
TEST_P(NormFindings, equal_rows_count_as_one) {
  Inputs inputs = rows_of_many_scales();
  for (std::size_t at = kColumns; at < inputs["x"].size(); ++at) {
    inputs["x"][at] = inputs["x"][at % kColumns];
  }
  const Problem p = problem(GetParam(), "bf16");
  Numbers y = delivered(inputs, GetParam(), &correct);
  for (double& each : y) {
    each = core::round_to(each, core::Dtype::bf16);
  }
  const double equal = findings_of(p, inputs, y, core::Dtype::bf16).front().limit;
  const Inputs other = rows_of_many_scales();
  Numbers z = delivered(other, GetParam(), &correct);
  for (double& each : z) {
    each = core::round_to(each, core::Dtype::bf16);
  }
  EXPECT_GT(equal, 4 * findings_of(p, other, z, core::Dtype::bf16).front().limit);
}

TEST_P(NormFindings, epsilon_times_ten_is_named) {
  const std::vector<op::Finding> found =
      findings_of(GetParam(), [](double squares, std::size_t) { return 1 / std::sqrt(squares / kColumns + 1e-4); });
  EXPECT_GT(found.at(0).measured, found[0].limit);
  EXPECT_TRUE(says(found[0], "rows are scaled as if epsilon were 0.0001, not 1e-05")) << found[0].text;
  EXPECT_NEAR(found.at(2).measured, 9e-5, 1e-7);
  EXPECT_LT(std::fabs(found[1].measured), 1e-4);
}

TEST_P(NormFindings, n_minus_one_is_named) {
  const std::vector<op::Finding> found = findings_of(
      GetParam(), [](double squares, std::size_t) { return 1 / std::sqrt(squares / (kColumns - 1.0) + 1e-5); });
  EXPECT_GT(found.at(0).measured, found[0].limit);
  EXPECT_TRUE(says(found[0], "as if the sum were divided by n - 1, not n")) << found[0].text;
  EXPECT_NEAR(found.at(1).measured, 1.0 / (kColumns - 1), 1e-5);
}

TEST_P(NormFindings, a_scale_of_all_rows_is_named) {
  const std::vector<op::Finding> found =
      findings_of(GetParam(), [](double squares, std::size_t row) { return 1.01 * correct(squares, row); });
  EXPECT_GT(found.at(0).measured, found[0].limit);
  EXPECT_NEAR(found[0].measured, 0.01, 1e-5);
  EXPECT_TRUE(says(found[0], "all rows are scaled by 1.01")) << found[0].text;
}

TEST_P(NormFindings, one_row_is_gated_and_named) {
  for (const double off : {0.001, -0.001, 0.5}) {
    const std::vector<op::Finding> found = findings_of(GetParam(), [off](double squares, std::size_t row) {
      return correct(squares, row) * (row == 17 ? 1 + off : 1);
    });
    EXPECT_GT(found.at(0).measured, found[0].limit) << off;
    EXPECT_TRUE(says(found[0], "row 17 is scaled by " + std::string(off == 0.5 ? "1.5"
                                                                    : off > 0  ? "1.001"
                                                                               : "0.999")))
        << found[0].text;
    EXPECT_FALSE(says(found[0], "as if")) << found[0].text;
  }
}

TEST_P(NormFindings, few_rows_are_not_judged) {
  Inputs inputs = rows_of_many_scales();
  const auto with_rows = [&](std::size_t rows) {
    inputs["x"].resize(rows * kColumns);
    const Numbers y =
        delivered(inputs, GetParam(), [](double squares, std::size_t row) { return 1.01 * correct(squares, row); });
    return findings_of(problem(GetParam(), "fp32", static_cast<std::int64_t>(rows)), inputs, y);
  };
  EXPECT_TRUE(std::isfinite(with_rows(8).at(0).limit));
  EXPECT_FALSE(std::isfinite(with_rows(7).at(0).limit));
  EXPECT_TRUE(with_rows(0).empty());
}

// A row that is not finite is judged elsewhere; the others still are.
TEST_P(NormFindings, rows_that_are_not_finite_are_left_out) {
  Inputs inputs = rows_of_many_scales();
  inputs["x"][5 * kColumns + 7] = std::nan("");
  Numbers y = delivered(inputs, GetParam(), &correct);
  y[9 * kColumns] = std::numeric_limits<double>::infinity();
  const std::vector<op::Finding> found = findings_of(problem(GetParam()), inputs, y);
  EXPECT_LE(found.at(0).measured, found[0].limit);
  EXPECT_EQ(found[0].text, "mean of the 62 rows' relative scale errors");
}

}  // namespace
}  // namespace numcheck::reference
