// Parameters that follow from the shapes of tensors, and shapes that fit nothing.
#include "diagnose/fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/attention_fwd.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/softmax_fwd.hpp"

namespace numcheck::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Fit fit_gemm(const std::vector<TensorShape>& shapes, const ChosenParams& chosen = {}) {
  return fit_params(op::gemm(), *op::find_mode("fp32"), chosen, shapes);
}

op::GemmParams gemm_of(const Fit& fit) {
  EXPECT_THAT(fit.mistakes, IsEmpty());
  return fit.mistakes.empty() ? op::from_params<op::GemmParams>(fit.params) : op::GemmParams{};
}

TEST(Fit, sizes_of_a_product_come_from_its_matrices) {
  const auto p = gemm_of(fit_gemm({{"a", {3, 5}}, {"b", {5, 7}}, {"d", {3, 7}}}));
  EXPECT_EQ(p.m, 3);
  EXPECT_EQ(p.n, 7);
  EXPECT_EQ(p.k, 5);
  EXPECT_EQ(p.batch, 1);
  EXPECT_FALSE(p.trans_a || p.trans_b || p.bias);
}

TEST(Fit, a_weight_that_only_fits_transposed_is_transposed_and_said_so) {
  const Fit fit = fit_gemm({{"a", {3, 5}}, {"b", {7, 5}}, {"d", {3, 7}}});
  EXPECT_TRUE(gemm_of(fit).trans_b);
  EXPECT_THAT(fit.notes, ElementsAre("trans_b = true"));
}

TEST(Fit, of_square_matrices_nothing_is_turned) {
  const Fit fit = fit_gemm({{"a", {4, 4}}, {"b", {4, 4}}, {"d", {4, 4}}});
  EXPECT_FALSE(gemm_of(fit).trans_a || gemm_of(fit).trans_b);
  EXPECT_THAT(fit.notes, IsEmpty());
}

TEST(Fit, products_that_are_never_batched_are_told_from_their_matrices) {
  const ChosenParams blocks = {{"scaling", std::string("1x128_128x128")}, {"trans_b", true}};
  const op::Mode& mode = *op::find_mode("fp8_e4m3");
  const std::vector<TensorShape> shapes = {{"a", {48, 264}}, {"b", {40, 264}}, {"d", {48, 40}}};
  const auto p = gemm_of(fit_params(op::gemm(), mode, blocks, shapes));
  EXPECT_EQ(p.m, 48);
  EXPECT_EQ(p.n, 40);
  EXPECT_EQ(p.k, 264);
  EXPECT_EQ(p.batch, 1);
  EXPECT_TRUE(may_have_port(op::gemm(), mode, blocks, "a_scale_inv"));
}

TEST(Fit, sizes_of_groups_come_from_the_tensors_of_each) {
  const op::Mode& mode = *op::find_mode("bf16");
  const std::vector<TensorShape> shapes = {{"a0", {96, 56}}, {"b0", {72, 56}}, {"d0", {96, 72}},
                                           {"a1", {8, 8}},   {"b1", {8, 8}},   {"d1", {8, 8}},
                                           {"a2", {0, 4}},   {"b2", {48, 4}},  {"d2", {0, 48}}};
  const Fit fit = fit_params(op::grouped_gemm(), mode, {}, shapes);
  ASSERT_THAT(fit.mistakes, IsEmpty());
  const auto p = op::from_params<op::GroupedGemmParams>(fit.params);
  EXPECT_EQ(p.m, "96+8+0");
  EXPECT_EQ(p.n, "72+8+48");
  EXPECT_EQ(p.k, "56+8+4");
  EXPECT_TRUE(p.trans_b) << "in all groups, as the first one shows";
  EXPECT_FALSE(p.trans_a);
  EXPECT_THAT(fit.notes, ElementsAre("group_m = 96+8+0", "group_n = 72+8+48", "group_k = 56+8+4", "trans_b = true"));
  EXPECT_THAT(fit_params(op::grouped_gemm(), mode, {{"trans_b", false}}, shapes).mistakes,
              ElementsAre(HasSubstr("group 0: b has 72 rows")));
  const Fit chosen = fit_params(op::grouped_gemm(), mode, {{"group_k", std::string("56+8+4")}}, shapes);
  EXPECT_THAT(chosen.notes, ElementsAre("group_m = 96+8+0", "group_n = 72+8+48", "trans_b = true")) << "the others";
  EXPECT_THAT(fit_params(op::grouped_gemm(), mode, {{"group_k", std::string("56+8+5")}}, shapes).mistakes,
              testing::Not(IsEmpty()))
      << "what is chosen stays";
}

TEST(Fit, groups_that_do_not_fit_are_named) {
  const op::Mode& mode = *op::find_mode("bf16");
  const auto mistakes = [&mode](const std::vector<TensorShape>& shapes) {
    return fit_params(op::grouped_gemm(), mode, {}, shapes).mistakes;
  };
  EXPECT_THAT(mistakes({{"a0", {9, 5}}, {"b0", {7, 5}}, {"a2", {9, 5}}, {"b2", {7, 5}}}),
              ElementsAre(HasSubstr("a1 is not there, and 3 groups are")));
  EXPECT_THAT(mistakes({{"a0", {9, 5}}, {"d0", {9, 7}}}), ElementsAre(HasSubstr("b0 is not there")));
  EXPECT_THAT(mistakes({{"a0", {9, 5}}, {"b0", {7, 5}}, {"a1", {9, 5}}, {"b1", {7, 6}}}),
              ElementsAre(HasSubstr("group 1: b has 6 columns")))
      << "of the ways to turn operands, the one that most groups fit";
}

TEST(Fit, groups_have_ports_as_far_as_there_may_be_groups) {
  const op::Mode& mode = *op::find_mode("bf16");
  for (const char* port : {"a0", "b63", "c7", "bias12", "d1"}) {
    EXPECT_TRUE(may_have_port(op::grouped_gemm(), mode, {}, port)) << port;
  }
  for (const char* port : {"a", "a64", "x1", "", "a0_scale_inv"}) {
    EXPECT_FALSE(may_have_port(op::grouped_gemm(), mode, {}, port)) << port;
  }
  EXPECT_TRUE(may_have_port(op::grouped_gemm(), *op::find_mode("fp8_e4m3"), {}, "a5_scale_inv"));
  const ChosenParams two = {{"group_m", std::string("8+8")}};
  EXPECT_TRUE(may_have_port(op::grouped_gemm(), mode, two, "a1"));
  EXPECT_FALSE(may_have_port(op::grouped_gemm(), mode, two, "a2"));
}

TEST(Fit, what_is_chosen_stays) {
  EXPECT_THAT(fit_gemm({{"a", {3, 5}}, {"b", {7, 5}}, {"d", {3, 7}}}, {{"trans_b", false}}).mistakes,
              ElementsAre(HasSubstr("b has 7 rows, but k = 5 because a has 5 columns")));
}

TEST(Fit, leading_dimensions_are_rows_unless_all_tensors_have_them) {
  const auto folded = gemm_of(fit_gemm({{"a", {2, 3, 5}}, {"b", {5, 7}}, {"d", {2, 3, 7}}}));
  EXPECT_EQ(folded.m, 6);
  EXPECT_EQ(folded.batch, 1);
  const auto batched = gemm_of(fit_gemm({{"a", {2, 3, 5}}, {"b", {2, 5, 7}}, {"d", {2, 3, 7}}}));
  EXPECT_EQ(batched.m, 3);
  EXPECT_EQ(batched.batch, 2);
}

TEST(Fit, a_tensor_switches_on_what_needs_it) {
  const Fit fit = fit_gemm({{"a", {3, 5}}, {"b", {5, 7}}, {"bias", {7}}, {"c", {3, 7}}, {"d", {3, 7}}});
  EXPECT_TRUE(gemm_of(fit).bias);
  EXPECT_EQ(gemm_of(fit).beta, 1);
}

TEST(Fit, contradictions_name_both_tensors) {
  EXPECT_THAT(fit_gemm({{"a", {3, 5}}, {"b", {6, 7}}, {"d", {3, 7}}}).mistakes,
              ElementsAre(HasSubstr("b has 6 rows, but k = 5 because a has 5 columns")));
  EXPECT_THAT(fit_gemm({{"a", {3, 5}}, {"x", {5, 7}}}).mistakes, ElementsAre(HasSubstr("gemm has no tensor \"x\"")));
  EXPECT_THAT(fit_gemm({{"a", {3, 5}}, {"d", {3, 7}}, {"bias", {1, 8}}}).mistakes,
              ElementsAre(HasSubstr("bias has 8 columns, but n = 7 because d has 7 columns")));
}

TEST(Fit, sizes_that_no_tensor_tells_are_asked_for) {
  EXPECT_THAT(fit_gemm({{"a", {3, 5}}}).mistakes, ElementsAre(HasSubstr("--param n=N")));
}

TEST(Fit, vectors_are_rows_or_columns_as_the_op_has_them) {
  const std::vector<TensorShape> shapes = {{"x", {4, 2, 8}}, {"gamma", {8}}, {"beta", {8}}, {"mu", {8}}, {"y", {8, 8}}};
  const Fit fit = fit_params(op::layernorm_fwd(), *op::find_mode("bf16"), {}, shapes);
  ASSERT_THAT(fit.mistakes, IsEmpty());
  EXPECT_EQ(op::from_params<op::LayernormFwdParams>(fit.params).rows, 8);
  EXPECT_EQ(op::from_params<op::LayernormFwdParams>(fit.params).hidden, 8);
}

TEST(Fit, empty_and_huge_shapes_are_no_crash) {
  EXPECT_EQ(gemm_of(fit_gemm({{"a", {0, 5}}, {"b", {5, 7}}, {"d", {0, 7}}})).m, 0);
  EXPECT_THAT(fit_gemm({{"a", {}}, {"b", {5, 7}}, {"d", {3, 7}}}).mistakes, testing::Not(IsEmpty()));
  (void)fit_gemm({{"a", {std::int64_t{1} << 28, std::int64_t{1} << 27}}, {"b", {5, 7}}});
  constexpr std::int64_t kHuge = std::int64_t{1} << 50;
  EXPECT_THAT(fit_gemm({{"a", {kHuge, kHuge, 0}}, {"b", {0, kHuge}}, {"d", {kHuge, kHuge}}}).mistakes,
              testing::Not(IsEmpty()));
}

TEST(Fit, other_ops_with_sizes_that_shapes_do_not_tell) {
  const Fit fit = fit_params(op::softmax_fwd(), *op::find_mode("fp32"), {{"heads", std::int64_t{2}}},
                             std::vector<TensorShape>{{"x", {6, 5, 9}}, {"y", {6, 5, 9}}});
  ASSERT_THAT(fit.mistakes, IsEmpty());
  const auto p = op::from_params<op::SoftmaxFwdParams>(fit.params);
  EXPECT_EQ(p.batches * p.heads * p.sq, 30);
  EXPECT_EQ(p.sk, 9);
  const Fit folded = fit_params(op::softmax_fwd(), *op::find_mode("fp32"), {{"heads", std::int64_t{2}}},
                                std::vector<TensorShape>{{"x", {30, 9}}, {"y", {30, 9}}});
  ASSERT_THAT(folded.mistakes, IsEmpty());
  EXPECT_EQ(op::from_params<op::SoftmaxFwdParams>(folded.params).batches, 1);
  EXPECT_EQ(op::from_params<op::SoftmaxFwdParams>(folded.params).sq, 15);
  const Fit attention = fit_params(op::attention_fwd(), *op::find_mode("bf16"), {},
                                   std::vector<TensorShape>{{"q", {1, 2, 3, 4}}, {"o", {1, 2, 3, 4}}});
  EXPECT_THAT(attention.mistakes, testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace numcheck::diagnose
