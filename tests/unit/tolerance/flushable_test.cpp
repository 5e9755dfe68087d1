// What flushing subnormal numbers to zero may cost.
#include "tolerance/flushable.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace numcheck::tolerance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSubnormal = 0x1p-130;

TEST(Flushable, loses_inputs) {
  EXPECT_EQ(Flushable(kSubnormal).lost, kSubnormal);
  EXPECT_EQ(Flushable(-kSubnormal).lost, kSubnormal);
  EXPECT_EQ(Flushable(0x1p-126).lost, 0) << "the least normal number";
  EXPECT_EQ(Flushable(0.0).lost, 0);
  EXPECT_EQ(Flushable(kInfinity).lost, 0);
}

TEST(Flushable, carries_what_is_lost) {
  EXPECT_EQ((Flushable(kSubnormal) * Flushable(0x1p20)).lost, 0x1p-110);
  EXPECT_EQ((Flushable(kSubnormal) + Flushable(1.0)).lost, kSubnormal);
  EXPECT_EQ((Flushable(3.0) * Flushable(0.5)).lost, 0);
}

TEST(Flushable, loses_results) {
  EXPECT_EQ((Flushable(0x1p-70) * Flushable(0x1p-60)).lost, kSubnormal);
  EXPECT_EQ((Flushable(0x1.8p-126) - Flushable(0x1p-126)).lost, 0x1p-127);
  EXPECT_EQ((Flushable(0x1p-60) * Flushable(0x1p-60)).lost, 0);
}

TEST(Flushable, loses_partial_sums_of_small_terms_only) {
  Sum<Flushable> large, small;
  for (const double term : {0x1p-101, -0x1p-101, 1.0}) {
    large.add(Flushable(term));
  }
  for (const double term : {0x1.8p-126, -0x1p-126, 1.0}) {
    small.add(Flushable(term));
  }
  EXPECT_EQ(large.result().lost, 0);
  EXPECT_EQ(small.result().lost, 2 * 0x1p-126) << "2^-127 may be, and a partial sum of 1 and one term is not";
}

TEST(Flushable, infinity_times_what_may_be_zero_is_anything) {
  EXPECT_EQ((Flushable(kInfinity) * Flushable(kSubnormal)).lost, kInfinity);
  EXPECT_EQ((Flushable(kInfinity) * Flushable(2.0)).lost, 0);
  EXPECT_TRUE(indeterminate(Flushable(kSubnormal), Flushable(-kInfinity)));
  EXPECT_EQ((Flushable(0.0) * Flushable(1, kInfinity)).lost, kInfinity);
}

TEST(Flushable, reciprocal_root_of_what_may_be_zero_is_anything) {
  EXPECT_EQ(reciprocal_root(Flushable(kSubnormal)).lost, kInfinity);
  EXPECT_EQ(reciprocal_root(Flushable(4.0)).lost, 0);
  const Flushable some = reciprocal_root(Flushable(4.0, 3.0));
  EXPECT_EQ(some.y, 0.5);
  EXPECT_EQ(some.lost, 0.5);
}

}  // namespace
}  // namespace numcheck::tolerance
