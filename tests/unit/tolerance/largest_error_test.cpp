// The largest of many numbers with errors of their own.
#include "tolerance/largest_error.hpp"

#include <gtest/gtest.h>

namespace numcheck::tolerance {
namespace {

TEST(LargestError, of_one_number_is_its_own) {
  LargestError error;
  EXPECT_EQ(error.bound(), 0);
  error.add(0.5, 0.2, 0);
  EXPECT_EQ(error.bound(), 0.5);
  EXPECT_EQ(error.deviation(), 0.2);
}

TEST(LargestError, smaller_numbers_count_as_far_as_they_can_become_the_largest) {
  LargestError error;
  error.add(0.1, 0.02, 0);
  error.add(3, 0.1, 10);  // never
  EXPECT_EQ(error.bound(), 0.1);
  EXPECT_EQ(error.deviation(), 0.02);
  error.add(3, 0.5, 1);  // 2 above at most; and 6 standard deviations from 1 below are 2 above
  EXPECT_EQ(error.bound(), 2);
  EXPECT_NEAR(6 * error.deviation(), 2, 1e-12);
}

TEST(LargestError, rounding_may_make_a_number_larger_than_the_largest) {
  LargestError error;
  error.add(0.1, 0.02, -1e-9);
  EXPECT_EQ(error.bound(), 0.1);
}

}  // namespace
}  // namespace numcheck::tolerance
