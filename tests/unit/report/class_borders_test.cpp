// The search for a condition that tells rows apart: what it finds, in which order, and when it gives up.
#include "report/class_borders.hpp"

#include <gtest/gtest.h>

namespace numcheck::report {
namespace {

using Kind = Fact::Kind;

std::string condition(const std::vector<Fact>& facts, const std::vector<bool>& inside) {
  const auto border = find_border(facts, inside);
  return border.has_value() ? border->condition : "";
}

std::vector<bool> flipped(std::vector<bool> rows) {
  rows.flip();
  return rows;
}

TEST(ClassBorders, no_rows_no_facts_and_only_one_set_have_none) {
  EXPECT_FALSE(find_border({}, {}).has_value());
  EXPECT_FALSE(find_border({}, {true, false}).has_value());
  const std::vector<Fact> facts = {{"k", Kind::extent, {4, 5}, {}}};
  EXPECT_FALSE(find_border(facts, {true, true}).has_value());
  EXPECT_FALSE(find_border(facts, {false, false}).has_value());
}

TEST(ClassBorders, equal_rows_in_both_sets_have_none) {
  const std::vector<Fact> facts = {{"m", Kind::extent, {8, 8, 9}, {}}, {"k", Kind::extent, {4, 4, 7}, {}}};
  EXPECT_FALSE(find_border(facts, {true, false, false}).has_value());
}

TEST(ClassBorders, what_takes_three_terms_has_none) {
  // Inside: an even number of odd extents.
  const std::vector<Fact> facts = {{"m", Kind::choice, {0, 0, 1, 1}, {"even", "odd"}},
                                   {"n", Kind::choice, {0, 1, 0, 1}, {"even", "odd"}}};
  EXPECT_FALSE(find_border(facts, {true, false, false, true}).has_value());
}

TEST(ClassBorders, divisibility_comes_before_ranges_and_small_divisors_before_large_ones) {
  const std::vector<Fact> facts = {{"m", Kind::extent, {8, 8, 8, 8}, {}}, {"k", Kind::extent, {6, 10, 16, 20}, {}}};
  const std::vector<bool> inside = {true, true, false, false};
  EXPECT_EQ(condition(facts, inside), "k % 4 != 0");
  EXPECT_EQ(condition(facts, flipped(inside)), "k % 4 = 0");
  EXPECT_EQ(find_border(facts, inside)->also, std::vector<std::string>{"k <= 10"});
}

TEST(ClassBorders, ranges_end_at_shapes_that_ran) {
  const std::vector<Fact> facts = {{"m", Kind::extent, {16, 48, 64, 16}, {}},
                                   {"k", Kind::extent, {16, 32, 64, 128}, {}}};
  EXPECT_EQ(condition(facts, {true, true, false, false}), "k <= 32");
  EXPECT_EQ(condition(facts, {false, false, true, true}), "k >= 64");
  EXPECT_EQ(condition(facts, {true, false, false, false}), "k = 16") << "the smallest that ran";
}

TEST(ClassBorders, other_facts_come_last) {
  const std::vector<bool> inside = {false, false, true, true};
  EXPECT_EQ(condition({{"misalign", Kind::integer, {0, 0, 1, 4}, {}}}, inside), "misalign != 0");
  EXPECT_EQ(condition({{"misalign", Kind::integer, {0, 0, 1, 4}, {}}}, flipped(inside)), "misalign = 0");
  EXPECT_EQ(condition({{"misalign", Kind::integer, {0, 4, 1, 3}, {}}}, inside), "misalign % 2 != 0");
  EXPECT_EQ(condition({{"batch", Kind::integer, {1, 1, 2, 7}, {}}}, inside), "batch >= 2");
  EXPECT_EQ(condition({{"batch", Kind::integer, {1, 1, 2, 7}, {}}}, flipped(inside)), "batch = 1");
  EXPECT_EQ(condition({{"beta", Kind::real, {0, 0, 1, 1}, {}}}, inside), "beta != 0");
  EXPECT_EQ(condition({{"epilogue", Kind::choice, {0, 1, 2, 2}, {"gelu", "none", "relu"}}}, inside), "epilogue = relu");
  EXPECT_EQ(condition({{"epilogue", Kind::choice, {0, 1, 2, 2}, {"gelu", "none", "relu"}}}, flipped(inside)),
            "epilogue != relu");
}

TEST(ClassBorders, two_terms_are_tried_if_one_does_not_do) {
  const std::vector<Fact> facts = {{"m", Kind::extent, {64, 64, 3, 3, 64}, {}},
                                   {"k", Kind::extent, {64, 32, 64, 5, 5}, {}}};
  const std::vector<bool> inside = {true, true, false, false, false};
  EXPECT_EQ(condition(facts, inside), "m % 2 = 0 and k % 2 = 0");
  EXPECT_EQ(condition(facts, flipped(inside)), "m % 2 != 0 or k % 2 != 0");
  EXPECT_TRUE(find_border(facts, inside)->also.empty());
}

TEST(ClassBorders, other_facts_that_fit_as_well_are_named) {
  const std::vector<Fact> facts = {{"m", Kind::extent, {64, 64, 33}, {}}, {"n", Kind::extent, {16, 32, 7}, {}}};
  const auto border = find_border(facts, {true, true, false});
  ASSERT_TRUE(border.has_value());
  EXPECT_EQ(border->condition, "m % 2 = 0");
  EXPECT_EQ(border->also, (std::vector<std::string>{"n % 2 = 0", "m = 64", "n >= 16"}));
}

TEST(ClassBorders, the_order_of_rows_does_not_matter) {
  const std::vector<Fact> facts = {{"m", Kind::extent, {3, 64, 64, 5}, {}}, {"k", Kind::extent, {9, 7, 32, 8}, {}}};
  const std::vector<Fact> turned = {{"m", Kind::extent, {5, 64, 64, 3}, {}}, {"k", Kind::extent, {8, 32, 7, 9}, {}}};
  EXPECT_EQ(condition(facts, {true, false, false, true}), condition(turned, {true, false, false, true}));
}

}  // namespace
}  // namespace numcheck::report
