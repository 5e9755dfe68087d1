// Gradients of attention where inputs are not finite: what every kernel gets, and what depends on it.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attention_cases.hpp"
#include "op/attention_bwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::noise;
using testing::Problem;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

/// 3 queries and 3 keys of 2 channels, causal.
class SpecialGradients : public ::testing::Test {
 protected:
  explicit SpecialGradients(const char* mode = "bf16") {
    p_.sq = p_.sk = 3;
    p_.d = 2;
    p_.mask = "causal";
    problem_ = {&op::attention_bwd(), attention_bwd_reference(), op::to_params(p_), mode};
    unsigned seed = 1;
    for (const char* port : {"q", "k", "v", "do"}) {
      inputs_[port] = noise(6, ++seed, 1, 0);
    }
  }

  /// The inputs with what the forward pass makes of them, and what is set afterwards.
  void evaluate(const Inputs& afterwards = {}) {
    for (const char* port : {"o", "lse"}) {
      inputs_[port] = testing::derived(problem_, inputs_, port, Numbers(port == std::string("o") ? 6 : 3));
    }
    for (const auto& [port, numbers] : afterwards) {
      inputs_[port] = numbers;
    }
    values_ = testing::evaluate(problem_, inputs_);
  }

  /// "n" for NaN, "i" for an infinity, "?" for an element that is not determined, "." for a number.
  [[nodiscard]] std::string pattern(std::string_view port) const {
    model::ModelRequest request;
    request.params = &problem_.params;
    request.mode = op::find_mode(problem_.mode);
    const Numbers value = testing::value_of(values_, port);
    std::vector<float> bound(value.size()), deviation(value.size());
    tolerance::attention_bwd_error(request, values_, port, bound, deviation);
    std::string out;
    for (std::size_t n = 0; n < value.size(); ++n) {
      const bool unknown = !(static_cast<double>(bound[n]) < tolerance::kUndeterminedBound);
      out += std::isnan(value[n]) ? 'n' : std::isinf(value[n]) ? 'i' : unknown ? '?' : '.';
    }
    return out;
  }

  op::AttentionParams p_;
  Problem problem_;
  Inputs inputs_;
  op::Values values_;
};

TEST_F(SpecialGradients, numbers_are_numbers) {
  evaluate();
  for (const char* port : {"dq", "dk", "dv"}) {
    EXPECT_EQ(pattern(port), "......") << port;
  }
}

TEST_F(SpecialGradients, nan_in_a_key_reaches_who_sees_it) {
  inputs_["k"][3] = kNan;  // of key 1, which query 0 does not see
  evaluate();
  EXPECT_EQ(pattern("dq"), "..nnnn");
  EXPECT_EQ(pattern("dk"), "nnnnnn");  // queries 1 and 2 see key 0, too
  EXPECT_EQ(pattern("dv"), "nnnnnn");
}

TEST_F(SpecialGradients, nan_in_the_last_key_leaves_the_other_queries_alone) {
  inputs_["k"][4] = kNan;
  evaluate();
  EXPECT_EQ(pattern("dq"), "....nn");
}

TEST_F(SpecialGradients, a_channel_of_do_reaches_that_channel_of_dv) {
  inputs_["do"][3] = kNan;  // of query 1
  evaluate();
  EXPECT_EQ(pattern("dv"), ".n.n..");
  EXPECT_EQ(pattern("dq"), "..nn..");
  EXPECT_EQ(pattern("dk"), "nnnn..");
}

TEST_F(SpecialGradients, infinity_times_a_weight_is_infinite_unless_the_weight_may_be_zero) {
  inputs_["do"][3] = kInfinity;
  evaluate();
  EXPECT_EQ(pattern("dv"), ".i.i..");
  inputs_["q"] = {1, 0, 1, 0, 1, 0};
  inputs_["k"] = {0, 0, -20, 0, 0, 0};  // query 1 gives key 1 a weight of e^-14, which may be 0 in FP16
  evaluate();
  EXPECT_EQ(pattern("dv"), ".i.?..");
  inputs_["k"] = {0, 0, -1000, 0, 0, 0};  // a weight that is 0 in all formats: 0 times infinity
  evaluate();
  EXPECT_EQ(pattern("dv"), ".i.n..");
}

TEST_F(SpecialGradients, an_infinite_negative_score_weighs_nothing) {
  inputs_["q"] = {1, 1, 1, 1, 1, 1};
  inputs_["k"][2] = -kInfinity;  // key 1
  evaluate();
  EXPECT_EQ(pattern("dv"), "......");
  EXPECT_EQ(pattern("dq"), "..n.n.");  // 0 times that infinity, in its channel
  EXPECT_EQ(pattern("dk"), "......");
}

TEST_F(SpecialGradients, a_query_that_may_count_as_one_that_sees_nothing_is_not_determined) {
  evaluate({{"lse", {0, 0, -kInfinity}}});
  EXPECT_EQ(pattern("dq"), "....??");
  EXPECT_EQ(pattern("dv"), "??????");
}

TEST_F(SpecialGradients, a_query_whose_scores_exceed_fp32_is_not_determined) {
  evaluate({{"lse", {0, 0, kInfinity}}});  // infinity less infinity for a kernel that computes it again, otherwise 0
  EXPECT_EQ(pattern("dq"), "....??");
  EXPECT_EQ(pattern("dk"), "??????");
  EXPECT_EQ(pattern("dv"), "??????");
}

TEST_F(SpecialGradients, the_sink_of_a_query_whose_products_overflow_is_not_determined) {
  p_.heads = 2;
  p_.softmax = "learnable";
  p_.layout = "bhsd";
  problem_.params = op::to_params(p_);
  inputs_ = {{"softmax_offset", {0.5, 0.5}}, {"o", Numbers(12)}, {"lse", Numbers(6, 0.5)}};
  for (const char* port : {"q", "k", "v", "do"}) {
    inputs_[port] = noise(12, 1, 1, 0);
  }
  inputs_["q"][6] = kNan;  // in head 1, the first query
  values_ = testing::evaluate(problem_, inputs_);
  EXPECT_EQ(pattern("dsoftmax_offset"), "..");
  inputs_["q"][0] = inputs_["k"][0] = inputs_["q"][1] = 0x1p65;
  inputs_["k"][1] =
      -0x1p66;  // 2^130 - 2^131 is a negative score, or NaN to a kernel that computes the log-sum-exp again
  values_ = testing::evaluate(problem_, inputs_);
  EXPECT_EQ(pattern("dsoftmax_offset"), "?.");
}

TEST_F(SpecialGradients, overflow_inside_a_row_leaves_the_others_alone) {
  inputs_["do"][4] = inputs_["v"][4] = 0x1p64;  // the last query's dp overflows
  evaluate();
  EXPECT_EQ(pattern("dq"), "....??");
  EXPECT_EQ(pattern("dk"), "??????");
  EXPECT_EQ(pattern("dv"), "......");
}

TEST_F(SpecialGradients, an_irrelevant_score_however_large_does_not_matter) {
  inputs_["q"] = {1, 0, 1, 0, 1, 0};
  inputs_["k"] = {0, 0, -0x1p80, 0, 0, 0};
  evaluate();
  EXPECT_EQ(pattern("dq"), "......");
}

TEST_F(SpecialGradients, a_dropped_pair_that_is_not_finite_is_not_determined) {
  p_.dropout = 0.5;
  problem_.params = op::to_params(p_);
  inputs_["dropout_mask"] = {1, 1, 1, 1, 0, 1, 1, 1, 1};  // query 1 drops key 1
  inputs_["v"][3] = kNan;                                 // of key 1
  evaluate({{"o", Numbers(6, 0.5)}});
  EXPECT_EQ(pattern("dq"), "..??nn");
  EXPECT_EQ(pattern("dv"), "......");
}

TEST_F(SpecialGradients, a_dropped_pair_whose_dp_overflows_is_not_determined) {
  p_.dropout = 0.5;
  problem_.params = op::to_params(p_);
  inputs_["dropout_mask"] = {1, 1, 1, 1, 0, 1, 1, 1, 1};  // query 1 drops key 1
  inputs_["v"][2] = inputs_["v"][3] = 1e16;               // of key 1
  inputs_["do"][2] = inputs_["do"][3] = 1e23;             // of query 1
  evaluate();
  EXPECT_EQ(pattern("dq"), "..??..");
}

class SpecialGradientsFp16 : public SpecialGradients {
 protected:
  SpecialGradientsFp16() : SpecialGradients("fp16") {}
};

TEST_F(SpecialGradientsFp16, gradients_of_scores_may_overflow_in_16_bits) {
  inputs_["do"] = {1, 1, 1, 1, 600, 600};
  inputs_["v"] = {1, 1, 600, 600, -600, -600};
  inputs_["q"] = inputs_["k"] = Numbers(6, 0.01);
  evaluate();
  EXPECT_EQ(pattern("dq"), "....??");
  EXPECT_EQ(pattern("dv"), "......");
}

}  // namespace
}  // namespace numcheck::reference
