// Grouped products by hand: every group has sizes, operands and outputs of its own.
#include "op/grouped_gemm.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "op/mode.hpp"
#include "reference/references.hpp"
#include "tolerance/gemm_model.hpp"
#include "tolerance/grouped_gemm_model.hpp"

namespace numcheck::reference {
namespace {

using Doubles = std::vector<double>;

const op::Mode& mode(std::string_view name) {
  return *op::find_mode(name);
}

std::vector<std::string> mistakes_of(const op::GroupedGemmParams& p, std::string_view name = "bf16") {
  return op::grouped_gemm().check(op::to_params(p), mode(name));
}

Doubles output(const op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  return found == values.outputs.end() ? Doubles() : Doubles(found->value.span().begin(), found->value.span().end());
}

/// Three groups: [1 2; 3 4] [1 0; 0 2], nothing to add up, and [5 6] [1; -1], alpha = 2.
class ThreeGroups : public ::testing::Test {
 protected:
  op::GroupedGemmParams p{.m = "2+1+1", .n = "2+3+1", .k = "2+0+2", .alpha = 2};
  Doubles a0{1, 2, 3, 4}, b0{1, 0, 0, 2}, a2{5, 6}, b2{1, -1};
  op::Params params = op::to_params(p);
  op::ReferenceRequest request{.params = &params,
                               .inputs = {{"a0", a0.data(), 1, 2, 2},
                                          {"b0", b0.data(), 1, 2, 2},
                                          {"a1", nullptr, 1, 1, 0},
                                          {"b1", nullptr, 1, 0, 3},
                                          {"a2", a2.data(), 1, 1, 2},
                                          {"b2", b2.data(), 1, 2, 1}},
                               .sample = {}};
};

TEST_F(ThreeGroups, are_products_of_their_own) {
  const op::Values values = grouped_gemm_reference().values(request);

  EXPECT_EQ(output(values, "d0"), (Doubles{2, 8, 6, 16}));
  EXPECT_EQ(output(values, "d1"), (Doubles{0, 0, 0}));
  EXPECT_EQ(output(values, "d2"), (Doubles{-2}));
}

TEST_F(ThreeGroups, have_yardsticks_of_their_own) {
  const op::Yardsticks yardsticks = grouped_gemm_reference().yardsticks(request);

  ASSERT_EQ(yardsticks.outputs.size(), 3U);
  EXPECT_EQ(yardsticks.outputs[2].port, "d2");
  EXPECT_NEAR(yardsticks.outputs[2].magnitude[0], 22, 1e-4);       // 2 (|5| + |-6|)
  EXPECT_NEAR(yardsticks.outputs[2].deviation[0], 15.6205, 1e-4);  // 2 sqrt(25 + 36)
  EXPECT_NEAR(yardsticks.outputs[1].magnitude[0], 0, 1e-40);
}

TEST_F(ThreeGroups, are_judged_by_the_model_of_their_own_product) {
  model::ModelRequest asked{.params = &params, .mode = &mode("bf16"), .first_max = 6, .second_max = 2};
  const model::ErrorModel third = tolerance::grouped_gemm_error_model(asked, "d2");
  const op::Params alone = op::to_params(op::GemmParams{.m = 1, .n = 1, .k = 2, .alpha = 2});
  asked.params = &alone;

  EXPECT_EQ(third.source, tolerance::gemm_error_model(asked, "d").source);
  EXPECT_EQ(third.bound_magnitude, tolerance::gemm_error_model(asked, "d").bound_magnitude);
}

TEST_F(ThreeGroups, have_ports_that_say_which_output_reads_them) {
  const std::vector<op::Port> ports = op::grouped_gemm().ports(params, mode("bf16"));

  EXPECT_EQ(op::port_named(ports, "b2").of, "d2");
  EXPECT_EQ(op::port_named(ports, "a1").elements(), 0);
  EXPECT_EQ(op::port_named(ports, "d1").elements(), 3);
  const std::vector<op::Port> own = op::ports_of_group(ports, 2);
  ASSERT_EQ(own.size(), 3U);
  EXPECT_EQ(own[0].name, "a");
  EXPECT_EQ(own[1].of, "");
}

TEST(GroupedGemm, a_single_size_is_that_of_all_groups) {
  const auto products = op::products_of({.m = "8", .n = "4+5", .k = "16"});
  ASSERT_EQ(products.size(), 2U);
  EXPECT_EQ(products[1].m, 8);
  EXPECT_EQ(products[1].n, 5);
  EXPECT_EQ(op::products_of({.m = "8", .n = "4", .k = "1", .groups = 64}).size(), 64U);
}

TEST(GroupedGemm, says_what_is_wrong_with_lists) {
  EXPECT_TRUE(mistakes_of({.m = "1024+0"}).empty());
  for (const char* text : {"", "12,3", "-1", "1+", "+1", "2147483648", "many"}) {
    const auto mistakes = mistakes_of({.k = text});
    ASSERT_EQ(mistakes.size(), 1U) << text;
    EXPECT_NE(mistakes[0].find("group_k is \"" + std::string(text) + "\""), std::string::npos) << mistakes[0];
  }
  EXPECT_EQ(mistakes_of({.m = "1+2", .n = "1+2+3"}),
            (std::vector<std::string>{
                "grouped_gemm: group_m has 2 sizes for 3 groups; give one for each group, or one for all"}));
  EXPECT_EQ(mistakes_of({.m = "1+2", .groups = 4}).size(), 1U);
  std::string many = "1";
  for (int i = 0; i < 64; ++i) {
    many += "+1";
  }
  EXPECT_EQ(mistakes_of({.m = many}), (std::vector<std::string>{"grouped_gemm: 65 groups; there may be up to 64"}));
  EXPECT_THROW(static_cast<void>(op::products_of({.m = "x"})), core::InternalError);
}

TEST(GroupedGemm, says_what_is_wrong_with_every_product) {
  const auto mistakes = mistakes_of({.m = "1+2", .accumulate = "fast"});
  ASSERT_EQ(mistakes.size(), 1U);
  EXPECT_TRUE(mistakes[0].starts_with("grouped_gemm: accumulate \"fast\" applies to FP8 modes only")) << mistakes[0];
}

TEST(GroupedGemm, integers_suit_the_longest_sum) {
  const auto plan_of = [](const std::string& k) {
    return op::grouped_gemm().exact_plan(op::to_params(op::GroupedGemmParams{.k = k, .output = "fp32"}),
                                         mode("fp8_e4m3"));
  };
  EXPECT_TRUE(plan_of("256+512").positive);
  EXPECT_FALSE(plan_of("256+500").positive);
  EXPECT_FALSE(plan_of("512+96").positive);
  EXPECT_EQ(plan_of("512+96").stride, plan_of("513").stride);
}

TEST(GroupedGemm, names_go_back_and_forth) {
  EXPECT_EQ(op::name_in_group("a_scale_inv", 12), "a12_scale_inv");
  EXPECT_EQ(op::group_port("a12_scale_inv").port, "a_scale_inv");
  EXPECT_EQ(op::group_port("d63").group, 63U);
  EXPECT_THROW(static_cast<void>(op::name_in_group("d", 64)), core::InternalError);
  EXPECT_THROW(static_cast<void>(op::group_port("beta0")), core::InternalError);
}

TEST(GroupedGemm, has_the_epilogue_and_the_scales_of_every_product) {
  const op::GroupedGemmParams p{.m = "4+8",
                                .n = "8",
                                .k = "130",
                                .trans_b = true,
                                .bias = true,
                                .epilogue = "gelu",
                                .scaling = "1x128_1x128",
                                .power_of_two = true};
  const std::vector<op::Port> ports = op::grouped_gemm().ports(op::to_params(p), mode("fp8_e4m3"));
  EXPECT_EQ(op::port_named(ports, "bias1").cols, 8);
  EXPECT_EQ(op::port_named(ports, "bias1").of, "d1");
  EXPECT_EQ(op::port_named(ports, "a1").scaled_by, "a1_scale_inv");
  EXPECT_EQ(op::port_named(ports, "a1_scale_inv").elements(), 2 * 8);
  const std::vector<op::Port> own = op::ports_of_group(ports, 1);
  EXPECT_EQ(op::port_named(own, "b").scaled_by, "b_scale_inv");
  const auto second = op::product_behind(op::grouped_gemm(), op::to_params(p), "d1");
  EXPECT_EQ(second->bias, "bias1");
  EXPECT_EQ(second->b_scale_inv, "b1_scale_inv");
  EXPECT_EQ(second->params.epilogue, "gelu");
  EXPECT_EQ(
      op::port_named(op::grouped_gemm().ports(op::to_params(op::GroupedGemmParams{.trans_b = true, .scaling = "nvfp4"}),
                                              mode("fp4_e2m1")),
                     "b0_global_scale")
          .of,
      "b0");
}

TEST(GroupedGemm, scaled_products_are_refused_as_single_ones_are) {
  EXPECT_TRUE(mistakes_of({.trans_b = true, .scaling = "1x128_1x128"}, "fp8_e4m3").empty());
  const auto untransposed = mistakes_of({.scaling = "1x128_1x128"}, "fp8_e4m3");
  ASSERT_EQ(untransposed.size(), 1U);
  EXPECT_TRUE(untransposed[0].starts_with("grouped_gemm: scaling \"1x128_1x128\" is for operands")) << untransposed[0];
  EXPECT_EQ(mistakes_of({.trans_b = true, .scaling = "mxfp8"}, "bf16").size(), 1U);
  EXPECT_EQ(mistakes_of({.power_of_two = true}, "fp8_e4m3").size(), 1U);
}

TEST(GroupedGemm, scales_of_groups_are_derived_like_those_of_products) {
  const op::Params params = op::to_params(
      op::GroupedGemmParams{.m = "4+8", .k = "130", .trans_b = true, .scaling = "outer_vector", .power_of_two = true});
  const std::vector<op::Port> ports = op::grouped_gemm().ports(params, mode("fp8_e4m3"));
  Doubles drawn{-3, 0.7, 0, 8};
  grouped_gemm_reference().derive({&params, {}, &op::port_named(ports, "a0_scale_inv")}, drawn);
  EXPECT_EQ(drawn, (Doubles{2, 0.5, 1, 8}));
  Doubles integers{-3, 2};
  op::grouped_gemm().exact_inputs(params, op::port_named(ports, "b1_scale_inv"), integers);
  EXPECT_EQ(integers, (Doubles{1, 2}));
}

TEST(GroupedGemm, groups_add_a_bias_of_their_own_before_their_epilogue) {
  const op::Params params =
      op::to_params(op::GroupedGemmParams{.m = "1", .n = "2", .k = "2+0", .bias = true, .epilogue = "relu"});
  const Doubles a0{1, 2}, b0{1, -1, 0, -2}, bias0{10, 1}, bias1{-3, 4};
  const op::Values values = grouped_gemm_reference().values({.params = &params,
                                                             .inputs = {{"a0", a0.data(), 1, 1, 2},
                                                                        {"b0", b0.data(), 1, 2, 2},
                                                                        {"bias0", bias0.data(), 1, 1, 2},
                                                                        {"a1", nullptr, 1, 1, 0},
                                                                        {"b1", nullptr, 1, 0, 2},
                                                                        {"bias1", bias1.data(), 1, 1, 2}},
                                                             .sample = {}});
  EXPECT_EQ(output(values, "d0"), (Doubles{11, 0}));
  EXPECT_EQ(output(values, "d1"), (Doubles{0, 4})) << "a group without products";
}

TEST(GroupedGemm, products_behind_outputs_have_their_operands) {
  const op::Params params = op::to_params(op::GroupedGemmParams{.m = "1+2", .trans_a = true});
  const auto second = op::product_behind(op::grouped_gemm(), params, "d1");
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->a, "a1");
  EXPECT_EQ(second->params.m, 2);
  EXPECT_TRUE(second->params.trans_a);
  EXPECT_FALSE(op::product_behind(op::grouped_gemm(), params, "d1_amax").has_value());
}

Doubles noise(std::size_t size, std::uint64_t seed) {
  Doubles values(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t bits = (seed + i) * 0x9e3779b97f4a7c15U;
    values[i] = static_cast<double>((bits ^ bits >> 29) * 0xbf58476d1ce4e5b9U >> 11) * 0x1p-52 - 1;
  }
  return values;
}

/// Two products, of sums of 40 and of 257.
class TwoProducts : public ::testing::Test {
 protected:
  /// What is said of both, delivered without what lies `missing` from the end of k.
  std::vector<op::Finding> diagnosis(std::array<int, 2> missing, std::string_view about = "") {
    const std::array<Doubles, 2> delivered{product(0, k_[0] - missing[0]), product(1, k_[1] - missing[1])};
    const std::vector<op::Delivered> outputs{{"d0", delivered[0], core::Dtype::fp32, 1, {}},
                                             {"d1", delivered[1], core::Dtype::fp32, 1, {}}};
    const op::ReferenceRequest request{.params = &params_,
                                       .inputs = {{"a0", a_[0].data(), 1, kSide, k_[0]},
                                                  {"b0", b_[0].data(), 1, k_[0], kSide},
                                                  {"a1", a_[1].data(), 1, kSide, k_[1]},
                                                  {"b1", b_[1].data(), 1, k_[1], kSide}},
                                       .sample = {}};
    const op::Values expected = grouped_gemm_reference().values(request);
    return grouped_gemm_reference().diagnose({&params_, request.inputs, &expected, outputs, &request.sample, about});
  }

 private:
  static constexpr std::int64_t kSide = 20;
  std::array<std::int64_t, 2> k_{40, 257};
  std::array<Doubles, 2> a_{noise(kSide * 40, 1), noise(kSide * 257, 100'000)};
  std::array<Doubles, 2> b_{noise(kSide * 40, 200'000), noise(kSide * 257, 300'000)};
  op::Params params_ = op::to_params(op::GroupedGemmParams{.m = "20", .n = "20", .k = "40+257"});

  [[nodiscard]] Doubles product(std::size_t group, std::int64_t terms) const {
    Doubles d(kSide * kSide);
    for (std::int64_t i = 0; i < kSide; ++i) {
      for (std::int64_t t = 0; t < terms; ++t) {
        for (std::int64_t j = 0; j < kSide; ++j) {
          d[static_cast<std::size_t>(i * kSide + j)] += a_[group][static_cast<std::size_t>(i * k_[group] + t)] *
                                                        b_[group][static_cast<std::size_t>(t * kSide + j)];
        }
      }
    }
    return d;
  }
};

TEST_F(TwoProducts, are_diagnosed_each_by_itself) {
  const auto second = diagnosis({0, 1});
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].port, "d1");
  EXPECT_EQ(second[0].cause, "the last 1 of k is missing");

  EXPECT_EQ(diagnosis({3, 1}).size(), 2U);
  EXPECT_TRUE(diagnosis({0, 0}).empty());
}

TEST_F(TwoProducts, are_not_diagnosed_unasked) {
  const auto first = diagnosis({3, 1}, "d0");
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].cause, "the last 3 of k are missing");
}

}  // namespace
}  // namespace numcheck::reference
