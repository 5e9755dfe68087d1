// Infinities of sums that overflow between two scales are told from others.
#include "reference/gemm_scale_overflow.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "op/gemm.hpp"
#include "op/known_cause.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Two rows and two columns of k products, of which the first ones have scales that leave a sum no room.
struct Extremes {
  explicit Extremes(const std::string& scaling, std::string_view epilogue = "none") {
    params.m = 2;
    params.n = 2;
    params.k = 132;
    params.trans_b = true;
    params.scaling = scaling;
    params.epilogue = epilogue;
    const bool blocks = scaling != "outer_vector";
    a.assign(2 * 132, 4);
    b.assign(2 * 132, 4);
    a_scales = blocks ? std::vector<double>{1, 1, 0x1p127, 1} : std::vector<double>{0x1p127, 1};
    b_scales = blocks ? std::vector<double>{1, 1, 0x1p-149, 1} : std::vector<double>{0x1p-149, 1};
  }

  [[nodiscard]] std::vector<op::Operand> inputs() const {
    const auto scales = [](std::string_view port, const std::vector<double>& values) {
      return op::Operand{.port = port, .data = values.data(), .cols = static_cast<std::int64_t>(values.size())};
    };
    return {{.port = "a", .data = a.data(), .rows = 2, .cols = 132},
            {.port = "b", .data = b.data(), .rows = 2, .cols = 132},
            scales("a_scale_inv", a_scales),
            scales("b_scale_inv", b_scales)};
  }

  /// The share that the cause explains if that element is `got`, and the others are right; 0 if it is not named.
  [[nodiscard]] double share(std::size_t element, double got) const {
    const op::Params typed = op::to_params(params);
    const std::vector<op::Operand> operands = inputs();
    const op::Values expected = gemm_reference().values({.params = &typed, .inputs = operands});
    std::vector<double> delivered(expected.outputs[0].value.span().begin(), expected.outputs[0].value.span().end());
    delivered[element] = got;
    const std::vector<op::Delivered> outputs = {{.port = "d", .value = delivered}};
    const op::Sample all;
    const auto findings = gemm_reference().diagnose({&typed, operands, &expected, outputs, &all});
    const auto found = std::ranges::find(findings, op::kScaleOverflow.name, &op::Finding::name);
    EXPECT_TRUE(found == findings.end() || found->about == op::Finding::About::pattern);
    return found == findings.end() ? 0 : found->measured;
  }

  op::GemmParams params;
  std::vector<double> a, b, a_scales, b_scales;
};

TEST(GemmScaleOverflow, is_named_where_a_scale_leaves_a_sum_no_room) {
  for (const char* scaling : {"outer_vector", "1x128_1x128"}) {
    EXPECT_EQ(Extremes(scaling).share(0, kInfinity), 1) << scaling;
    EXPECT_EQ(Extremes(scaling, "gelu").share(0, kNan), 1) << scaling << ": gelu(-infinity)";
    EXPECT_EQ(Extremes(scaling).share(3, kInfinity), 0) << scaling << ": its scales are 1";
    EXPECT_EQ(Extremes(scaling).share(0, 7), 0) << scaling << ": a number";
  }
  Extremes small("outer_vector");
  std::ranges::fill(small.a, 0x1p-9);
  std::ranges::fill(small.b, 0x1p-9);
  EXPECT_EQ(small.share(0, kInfinity), 0) << "the sum fits between them";
}

TEST(GemmScaleOverflow, is_no_cause_of_operands_with_one_scale) {
  Extremes tensor("tensor");
  EXPECT_EQ(tensor.share(0, kInfinity), 0);
}

}  // namespace
}  // namespace numcheck::reference
