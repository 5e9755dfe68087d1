// The mask that a backend draws: what is known of it before, and what is judged afterwards.
#include "reference/attention_dropout_mask.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/rng.hpp"
#include "op/attention_dropout.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

class DrawnMaskTest : public testing::Test {
 protected:
  DrawnMaskTest() {
    p_.batches = 2;
    p_.heads = 3;
    p_.sq = 40;
    p_.sk = 50;
    p_.d = 8;
    p_.dropout = 0.25;
    p_.dropout_mask = "drawn";
    draw();
  }

  void draw() {
    mask_.resize(static_cast<std::size_t>(p_.batches * p_.heads * p_.sq * p_.sk));
    for (std::size_t at = 0; at < mask_.size(); ++at) {
      mask_[at] = core::philox4x32({static_cast<std::uint32_t>(at), 0, 0, 0}, {7, 0})[0] < 0x40000000U ? 0 : 1;
    }
  }

  /// Names of the gates that the mask trips.
  [[nodiscard]] std::vector<std::string> tripped() const {
    std::vector<std::string> names;
    for (const op::Finding& finding : findings()) {
      if (finding.measured > finding.limit) {
        names.push_back(finding.name);
      }
    }
    return names;
  }

  [[nodiscard]] std::string text_of(std::string_view name) const {
    const std::vector<op::Finding> all = findings();
    const auto found = std::ranges::find(all, name, &op::Finding::name);
    return found == all.end() ? "" : found->text;
  }

  [[nodiscard]] std::vector<op::Finding> findings() const {
    const op::Params params = op::to_params(p_);
    const op::Values expected;
    const std::vector<op::Delivered> outputs = {{.port = "dropout_mask", .value = mask_}};
    const op::Sample all;
    return judge_drawn_mask({&params, {}, &expected, outputs, &all});
  }

  op::AttentionParams p_;
  std::vector<double> mask_;
};

TEST_F(DrawnMaskTest, independent_bits_pass) {
  EXPECT_TRUE(tripped().empty());
}

TEST_F(DrawnMaskTest, a_share_that_is_off_is_named) {
  for (std::size_t at = 0; at < mask_.size(); at += 4) {
    mask_[at] = 1;
  }
  const std::vector<std::string> names = tripped();
  EXPECT_TRUE(std::ranges::find(names, "dropped share") != names.end());
}

TEST_F(DrawnMaskTest, other_numbers_than_0_and_1_are_named) {
  mask_[77] = 0.5;
  EXPECT_EQ(tripped(), std::vector<std::string>{"neither 0 nor 1"});
}

TEST_F(DrawnMaskTest, heads_that_share_a_mask_are_named) {
  const std::size_t head = mask_.size() / 6;
  std::copy_n(mask_.begin(), head, mask_.begin() + static_cast<std::ptrdiff_t>(head));
  EXPECT_EQ(tripped(), (std::vector<std::string>{"dropped heads", "repeated draws", "copied draws"}));
}

/// A head whose mask is that of the one three heads before, five queries later.
TEST_F(DrawnMaskTest, copies_are_found_however_far_away) {
  const std::size_t head = mask_.size() / 6;
  std::copy_n(mask_.begin(), head - 5 * 50, mask_.begin() + static_cast<std::ptrdiff_t>(3 * head + 5 * 50));
  EXPECT_EQ(tripped(), std::vector<std::string>{"repeated draws"});
  EXPECT_EQ(text_of("repeated draws"), "the largest correlation, of weights that are 3 heads, 5 queries, 0 keys apart");
  for (std::size_t at = 0; at < mask_.size(); at += 2) {
    mask_[at] = mask_[at + 1];
  }
  EXPECT_EQ(text_of("repeated draws"), "the largest correlation, of weights that are 0 heads, 0 queries, 1 key apart");
}

/// Copies at the other end of masks that are too large for one transform.
TEST_F(DrawnMaskTest, copies_are_found_in_large_masks) {
  for (std::int64_t* length : {&p_.heads, &p_.sq, &p_.sk}) {
    p_.batches = p_.heads = 1;
    p_.sq = p_.sk = 40;
    *length = 3000;
    draw();
    EXPECT_TRUE(tripped().empty());
    const std::int64_t between = 2000 * (length == &p_.sk ? 1 : length == &p_.sq ? p_.sk : p_.sk * p_.sq);
    for (std::int64_t row = 0; row < (length == &p_.sk ? p_.sq : 1); ++row) {
      const auto first = mask_.begin() + row * p_.sk;
      std::copy_n(first, between / 2, first + between);
    }
    EXPECT_EQ(tripped(), (std::vector<std::string>{"repeated draws", "copied draws"}))
        << p_.heads << " " << p_.sq << " " << p_.sk;
  }
}

TEST_F(DrawnMaskTest, a_query_a_key_or_a_head_of_its_own_share_is_named) {
  const std::vector<double> right = mask_;
  for (std::size_t head = 0; head < 6; ++head) {
    std::fill_n(mask_.begin() + static_cast<std::ptrdiff_t>(head * 2000 + 7 * 50), 50, 1);
  }
  EXPECT_EQ(tripped(), std::vector<std::string>{"dropped share of a query"});
  EXPECT_EQ(text_of("dropped share of a query"), "0.000000 of 300 weights of query 7 are dropped, expected 0.250000");
  mask_ = right;
  for (std::size_t row = 0; row < 240; ++row) {
    mask_[row * 50 + 49] = 1;
  }
  EXPECT_EQ(tripped(), std::vector<std::string>{"dropped share of a key"});
  mask_ = right;
  for (std::size_t at = 2000; at < 4000; ++at) {
    mask_[at] = at % 3 == 0 ? 0 : mask_[at];
  }
  const std::vector<std::string> names = tripped();
  EXPECT_TRUE(std::ranges::find(names, "dropped share of a head") != names.end());
}

TEST_F(DrawnMaskTest, a_row_or_a_tile_of_its_own_share_is_named) {
  p_.batches = 2;
  p_.heads = 4;
  p_.sq = p_.sk = 256;
  draw();
  EXPECT_TRUE(tripped().empty());
  const std::vector<double> right = mask_;
  const auto set = [this](std::size_t head, std::size_t i, std::size_t j) { mask_[(head * 256 + i) * 256 + j] = 0; };
  for (std::size_t j = 0; j < 256; ++j) {
    set(3, 77, j);
  }
  EXPECT_NE(std::ranges::count(tripped(), "dropped share of a row"), 0);
  EXPECT_EQ(text_of("dropped share of a row"),
            "1.000000 of 256 weights of query 77 of head 3 are dropped, expected 0.250000");
  mask_ = right;
  for (std::size_t at = 0; at < 256; ++at) {
    set(6, 32 + at / 16, 64 + at % 16);
  }
  EXPECT_EQ(tripped(), std::vector<std::string>{"dropped share of a tile"});
  EXPECT_EQ(text_of("dropped share of a tile"),
            "1.000000 of 256 weights of head 6, queries from 32, keys from 64, are dropped, expected 0.250000");
}

TEST_F(DrawnMaskTest, weights_that_no_query_sees_do_not_count) {
  p_.mask = "causal";
  for (std::int64_t row = 0; row < p_.batches * p_.heads * p_.sq; ++row) {
    for (std::int64_t j = row % p_.sq + 1; j < p_.sk; ++j) {
      mask_[static_cast<std::size_t>(row * p_.sk + j)] = 0;
    }
  }
  EXPECT_TRUE(tripped().empty());
}

TEST_F(DrawnMaskTest, small_masks_allow_what_chance_allows) {
  p_.batches = p_.heads = p_.sq = p_.sk = 1;
  p_.dropout = 0.01;
  mask_ = {0};
  EXPECT_TRUE(tripped().empty());
}

TEST_F(DrawnMaskTest, without_the_mask_nothing_else_is_known) {
  const op::Params params = op::to_params(p_);
  const op::Values values = attention_fwd_reference().values({&params, {}, {}});
  ASSERT_EQ(values.outputs.size(), 1U);
  EXPECT_EQ(values.outputs[0].port, "dropout_mask");
  EXPECT_TRUE(values.outputs[0].unpredictable);
}

/// The cause that is named, if any.
std::string cause_of(const std::vector<op::Finding>& findings) {
  const auto named = std::ranges::find_if(findings, [](const op::Finding& finding) { return !finding.cause.empty(); });
  return named == findings.end() ? "" : named->cause;
}

/// The causes that are named.
std::vector<std::string> causes_of(const std::vector<op::Finding>& findings) {
  std::vector<std::string> causes;
  for (const op::Finding& finding : findings) {
    if (!finding.cause.empty()) {
      causes.push_back(finding.cause);
    }
  }
  return causes;
}

TEST_F(DrawnMaskTest, weights_that_share_a_draw_are_the_cause) {
  const std::vector<double> independent = mask_;
  const auto keys = static_cast<std::size_t>(p_.sk);
  for (std::size_t at = 0; at < mask_.size(); ++at) {
    const std::size_t query = at / keys % static_cast<std::size_t>(p_.sq);
    mask_[at] = independent[at - (query % 8 - query % 2) * keys];
  }
  EXPECT_EQ(cause_of(findings()), "each draw of the mask is used for 4 queries that are 2 apart");
  mask_[5 * keys] = 1 - mask_[5 * keys];
  EXPECT_EQ(cause_of(findings()), "") << "one weight is not explained";

  for (std::size_t at = 0; at < mask_.size(); ++at) {
    mask_[at] = independent[at - (at % keys) % 2];
  }
  EXPECT_EQ(cause_of(findings()), "each draw of the mask is used for 2 keys that are 1 apart");
}

/// Query 3 of head 1 has the draws of query 29 of head 4, besides.
TEST_F(DrawnMaskTest, shared_draws_excuse_no_copies) {
  p_.sk = 256;
  draw();
  const std::vector<double> independent = mask_;
  for (const bool is_copied : {false, true}) {
    for (std::size_t at = 0; at < mask_.size(); ++at) {
      const std::size_t row = at / 256, query = row % 40, draw = row - (query % 8 - query % 2);
      mask_[at] = independent[(is_copied && draw == 40 + 1 ? 4 * 40 + 25 : draw) * 256 + at % 256];
    }
    EXPECT_EQ(cause_of(findings()), is_copied ? "" : "each draw of the mask is used for 4 queries that are 2 apart");
  }
}

TEST_F(DrawnMaskTest, short_sequences_name_every_reuse_that_fits) {
  p_.sq = 4;
  draw();
  const auto keys = static_cast<std::size_t>(p_.sk);
  for (std::size_t at = 0; at < mask_.size(); ++at) {
    const std::size_t query = at / keys % 4;
    mask_[at] = mask_[at - query / 2 * 2 * keys];
  }
  EXPECT_EQ(causes_of(findings()),
            (std::vector<std::string>{"each draw of the mask is used for 2 queries that are 2 apart",
                                      "each draw of the mask is used for 4 queries that are 2 apart",
                                      "each draw of the mask is used for 8 queries that are 2 apart"}));
}

/// Of 64 weights 48 repeat another: that most are kept says little, that 18 of them are dropped again says much.
TEST_F(DrawnMaskTest, few_weights_tell_a_reuse_by_those_that_are_dropped) {
  p_.batches = 1;
  p_.heads = 2;
  p_.sq = 16;
  p_.sk = 2;
  p_.dropout = 0.1;
  mask_.assign(64, 1);
  for (std::size_t at = 0; at < mask_.size(); ++at) {
    const std::size_t key = at % 2, query = at / 2 % 16, head = at / 32,
                      draw = head * 8 + query / 8 * 4 + query % 2 * 2 + key;
    mask_[at] = draw < 6 ? 0 : 1;
  }
  const std::vector<std::string> gates = tripped();
  EXPECT_NE(std::ranges::find(gates, "repeated draws"), gates.end());
  EXPECT_EQ(cause_of(findings()), "each draw of the mask is used for 4 queries that are 2 apart");
}

/// The ninth query sees one key only: by chance it was dropped or kept as for the queries before.
TEST_F(DrawnMaskTest, a_reuse_that_explains_a_little_more_hides_no_other) {
  p_.sq = p_.sk = 9;
  p_.window_left = 0;
  draw();
  const std::vector<double> independent = mask_;
  for (std::size_t at = 0; at < mask_.size(); ++at) {
    const std::size_t query = at / 9 % 9;
    mask_[at] = independent[at - query / 2 * 2 * 9];
  }
  EXPECT_EQ(causes_of(findings()),
            (std::vector<std::string>{"each draw of the mask is used for 4 queries that are 2 apart",
                                      "each draw of the mask is used for 8 queries that are 2 apart"}));
}

TEST_F(DrawnMaskTest, a_wrong_share_alone_is_not_excused_by_a_reuse) {
  p_.dropout = 0.1;
  std::ranges::fill(mask_, 1);
  mask_[0] = 0;
  EXPECT_FALSE(tripped().empty());
  EXPECT_EQ(cause_of(findings()), "");
}

TEST_F(DrawnMaskTest, what_marks_a_weight_as_left_out_is_no_mask) {
  std::ranges::fill(mask_, kNoDraw);
  EXPECT_EQ(tripped(), std::vector<std::string>{"neither 0 nor 1"});
}

TEST_F(DrawnMaskTest, draws_that_are_shared_and_wrong_have_no_cause) {
  const std::vector<double> independent = mask_;
  const auto keys = static_cast<std::size_t>(p_.sk);
  for (std::size_t at = 0; at < mask_.size(); ++at) {
    const std::size_t query = at / keys % static_cast<std::size_t>(p_.sq);
    const std::size_t draw = at - (query % 8 - query % 2) * keys;
    mask_[at] = draw % 3 == 0 ? 1 : independent[draw];
  }
  const std::vector<std::string> names = tripped();
  EXPECT_TRUE(std::ranges::find(names, "repeated draws") != names.end());
  EXPECT_EQ(cause_of(findings()), "") << "too few are dropped as well";
}

}  // namespace
}  // namespace numcheck::reference
