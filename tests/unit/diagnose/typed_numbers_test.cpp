// The numbers that a person would have typed near a fitted one.
#include "diagnose/typed_numbers.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace numcheck::diagnose {
namespace {

using ::testing::Contains;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TypedNumbers, round_numbers_come_first) {
  EXPECT_EQ(typed_near(1.0000003e-6).front(), 1e-6);
  EXPECT_EQ(typed_near(-0.0010000004).front(), -0.001);
  EXPECT_THAT(typed_near(0.12500001), Contains(0.125));
  EXPECT_THAT(typed_near(0.0883883), Contains(DoubleEq(1 / std::sqrt(128.0))));
  EXPECT_THAT(typed_near(11.3137), Contains(DoubleEq(std::sqrt(128.0))));
  EXPECT_THAT(typed_near(0.333334), Contains(DoubleEq(1.0 / 3)));
  EXPECT_THAT(typed_near(1.42857144), Contains(DoubleEq(1 / 0.7)));
  EXPECT_THAT(typed_near(-14.285715), Contains(DoubleEq(-1 / 0.07)));
}

TEST(TypedNumbers, the_fitted_number_is_always_there) {
  EXPECT_EQ(typed_near(0.83972888173).back(), 0.839728882);
  EXPECT_THAT(typed_near(9998.7), Contains(9998.7));
  // Neither 1/9998 nor the root of anything.
  EXPECT_EQ(typed_near(0.00010002).front(), 1e-4);
}

TEST(TypedNumbers, numbers_that_are_none) {
  EXPECT_THAT(typed_near(0), ElementsAre(0));
  EXPECT_THAT(typed_near(std::numeric_limits<double>::quiet_NaN()), IsEmpty());
  EXPECT_THAT(typed_near(std::numeric_limits<double>::infinity()), IsEmpty());
  EXPECT_THAT(typed_near(5e-324), Contains(5e-324));
}

}  // namespace
}  // namespace numcheck::diagnose
