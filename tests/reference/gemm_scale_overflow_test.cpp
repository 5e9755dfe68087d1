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

  /// The share that a cause explains if elements are changed, and the others are right; 0 if it is not named.
  template <class Change>
  [[nodiscard]] double share_of(const op::KnownCause& cause, const Change& change,
                                core::Dtype dtype = core::Dtype::fp32) const {
    const op::Params typed = op::to_params(params);
    const std::vector<op::Operand> operands = inputs();
    const op::Values expected = gemm_reference().values({.params = &typed, .inputs = operands});
    std::vector<double> delivered(expected.outputs[0].value.span().begin(), expected.outputs[0].value.span().end());
    change(delivered);
    const std::vector<op::Delivered> outputs = {{.port = "d", .value = delivered, .dtype = dtype}};
    const op::Sample all;
    const auto findings = gemm_reference().diagnose({&typed, operands, &expected, outputs, &all});
    const auto found = std::ranges::find(findings, cause.name, &op::Finding::name);
    EXPECT_TRUE(found == findings.end() || found->about == op::Finding::About::pattern);
    return found == findings.end() ? 0 : found->measured;
  }
  [[nodiscard]] double share(std::size_t element, double got) const {
    return share_of(op::kScaleOverflow, [&](std::vector<double>& d) { d[element] = got; });
  }

  op::GemmParams params;
  std::vector<double> a, b, a_scales, b_scales;
};

TEST(GemmScaleOverflow, is_named_where_a_scale_leaves_a_sum_no_room) {
  for (const char* scaling : {"outer_vector", "1x128_1x128"}) {
    EXPECT_EQ(Extremes(scaling).share(0, kInfinity), 1) << scaling;
    Extremes negative(scaling, "gelu");
    std::ranges::fill(negative.a, -4);
    EXPECT_EQ(negative.share(0, kNan), 1) << scaling << ": gelu(-infinity)";
    EXPECT_EQ(negative.share(0, kInfinity), 0) << scaling;
    EXPECT_EQ(Extremes(scaling).share(0, -kInfinity), 0) << scaling << ": the sum is positive";
    EXPECT_EQ(Extremes(scaling).share(0, kNan), 0) << scaling << ": nothing makes NaN of it";
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

// One of four elements overflows between its scales.
TEST(GemmScaleOverflow, explains_no_others_beside_it) {
  const Extremes p("outer_vector");
  const auto change = [](double got) {
    return [got](std::vector<double>& d) {
      std::ranges::fill(d, got);
      d[0] = kInfinity;
    };
  };
  EXPECT_EQ(p.share_of(op::kScaleOverflow, change(kNan)), 0);
  EXPECT_EQ(p.share_of(op::kScaleOverflow, change(kInfinity)), 0);
}

// gelu as x (1 + tanh(...)) / 2 overflows on the way to 1.5 x 2^127.
TEST(GemmScaleOverflow, is_named_beside_infinities_that_are_right) {
  Extremes p("outer_vector", "gelu");
  std::fill(p.a.begin() + 132, p.a.end(), 0x1p14);
  std::fill(p.b.begin() + 132, p.b.end(), 0x1p10);
  const auto share = [&p](double scale) {
    p.a_scales[1] = scale;
    return p.share_of(op::kScaleOverflow, [](std::vector<double>& d) { d[0] = d[3] = kInfinity; });
  };
  EXPECT_EQ(share(1.5 * 0x1p96), 1);
  EXPECT_EQ(share(0x1p92), 0) << "one of two is infinite for no reason";
}

// What overflows in FP32 on the way to gelu does so far beyond FP16's numbers.
TEST(GemmScaleOverflow, of_gelu_explains_no_infinities_that_fp16_holds) {
  Extremes p("tensor", "gelu");
  std::ranges::fill(p.b, 0x1p9);
  std::fill(p.a.begin(), p.a.begin() + 132, -0x1p9);
  std::fill(p.a.begin() + 132, p.a.end(), 40000 / 132.0 / 0x1p9);
  const auto share = [&p](double last) {
    const auto change = [last](std::vector<double>& d) { d = {kNan, kNan, last, last}; };
    return p.share_of(op::kGeluOverflow, change, core::Dtype::fp16);
  };
  EXPECT_EQ(share(40000), 1);
  EXPECT_EQ(share(kInfinity), 0);
}

// Sums of 2^17 and -2^17 in FP16, of which gelu leaves infinity and NaN.
TEST(GemmScaleOverflow, of_gelu_explains_nan_of_negative_sums_only) {
  Extremes p("tensor", "gelu");
  std::ranges::fill(p.b, 0x1p9);
  std::fill(p.a.begin(), p.a.begin() + 132, -0x1p9);
  std::fill(p.a.begin() + 132, p.a.end(), 0x1p9);
  const auto share = [&p](double first, double last) {
    const auto change = [first, last](std::vector<double>& d) { d = {first, first, last, last}; };
    return p.share_of(op::kGeluOverflow, change, core::Dtype::fp16);
  };
  EXPECT_EQ(share(kNan, kInfinity), 1);
  EXPECT_EQ(share(kInfinity, kInfinity), 0) << "infinities of negative sums";
  EXPECT_EQ(share(kNan, -kInfinity), 0) << "half of what is wrong";
}

}  // namespace
}  // namespace numcheck::reference
