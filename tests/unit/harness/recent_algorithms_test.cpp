// Algorithms that are used again for cases of the same shape.
#include "kernels/harness/recent_algorithms.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fake.hpp"
#include "op/activation_fwd.hpp"
#include "op/gemm.hpp"

namespace numcheck::kernels::test {
namespace {

plan::Case gemm_of(std::int64_t m) {
  TestCase made(shape(m, 2, 3), "bf16");
  return made.c;
}

/// Counts what it makes; labels are numbers in the order of making.
class RecentAlgorithmsTest : public ::testing::Test {
 protected:
  std::string label_of(const plan::Case& c, bool chained = false) {
    const Call call{&c, {}, "", chained};
    return recent_.of(call, make_).front().label;
  }

  int made_ = 0;
  std::function<std::vector<Algorithm>(const Call&)> make_ = [this](const Call&) {
    Algorithm algorithm;
    algorithm.label = std::to_string(++made_);
    return std::vector<Algorithm>(each_, algorithm);
  };
  std::size_t each_ = 1;  ///< algorithms of a case
  harness::RecentAlgorithms recent_{3};
};

TEST_F(RecentAlgorithmsTest, cases_that_differ_in_their_numbers_only_share_them) {
  plan::Case c = gemm_of(1);
  EXPECT_EQ(label_of(c), "1");
  c.seed = 7;
  c.inputs.common.name = "positive";
  c.tags = {"again"};
  EXPECT_EQ(label_of(c), "1");
  EXPECT_EQ(made_, 1);
}

TEST_F(RecentAlgorithmsTest, whatever_else_differs_makes_new_ones) {
  const plan::Case c = gemm_of(1);
  EXPECT_EQ(label_of(c), "1");
  EXPECT_EQ(label_of(gemm_of(2)), "2") << "a parameter";
  plan::Case other = c;
  other.mode = op::find_mode("fp16");
  EXPECT_EQ(label_of(other), "3") << "the mode";
  other = c;
  other.algorithms = {plan::AlgorithmSpec::Kind::top, 2};
  EXPECT_EQ(label_of(other), "4") << "how many are asked for";
  other = c;
  other.op = &op::activation_fwd();
  EXPECT_EQ(label_of(other), "5") << "the op, whatever its parameters";
  EXPECT_EQ(label_of(c, true), "6") << "inputs that an earlier pass leaves";
}

TEST_F(RecentAlgorithmsTest, the_oldest_go_first) {
  for (const std::int64_t m : {1, 2, 3}) {
    static_cast<void>(label_of(gemm_of(m)));
  }
  EXPECT_EQ(label_of(gemm_of(1)), "1");
  EXPECT_EQ(label_of(gemm_of(4)), "4");
  EXPECT_EQ(label_of(gemm_of(2)), "2");
  EXPECT_EQ(label_of(gemm_of(1)), "5");
}

TEST_F(RecentAlgorithmsTest, those_of_a_case_stay_together_or_are_not_kept) {
  EXPECT_EQ(label_of(gemm_of(1)), "1");
  each_ = 2;
  EXPECT_EQ(label_of(gemm_of(2)), "2");
  EXPECT_EQ(label_of(gemm_of(1)), "1") << "three in all";
  EXPECT_EQ(label_of(gemm_of(3)), "3");
  EXPECT_EQ(label_of(gemm_of(2)), "4") << "both made room";
  each_ = 4;
  EXPECT_EQ(label_of(gemm_of(4)), "5");
  EXPECT_EQ(label_of(gemm_of(4)), "6") << "more than there is room for";
  EXPECT_EQ(label_of(gemm_of(2)), "4") << "which take no room";
}

TEST_F(RecentAlgorithmsTest, a_refusal_is_asked_for_again) {
  const plan::Case c = gemm_of(1);
  const auto refuse = [](const Call&) -> std::vector<Algorithm> { throw NotSupported("no engine"); };
  EXPECT_THROW(static_cast<void>(recent_.of({&c, {}, "", false}, refuse)), NotSupported);
  EXPECT_EQ(label_of(c), "1");
}

}  // namespace
}  // namespace numcheck::kernels::test
