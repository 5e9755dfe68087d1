// Work that does not return is reported once; slow checks and work that ends are not reported.
#include "run/stuck_watch.hpp"

#include <gtest/gtest.h>

namespace numcheck::run {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(StuckWatch, work_beyond_its_limit_is_reported_once) {
  StuckWatch watch;
  const auto work = watch.begin("the reference of gemm", 2);
  auto now = StuckWatch::Clock::now();
  EXPECT_FALSE(watch.check(now += milliseconds(900)));
  EXPECT_FALSE(watch.check(now += milliseconds(900)));
  EXPECT_EQ(watch.check(now += milliseconds(900)), "the reference of gemm is stuck: not finished after 2 s");
  EXPECT_FALSE(watch.check(now += seconds(5)));
}

TEST(StuckWatch, time_without_checks_does_not_count) {
  StuckWatch watch;
  const auto work = watch.begin("a reference", 2);
  auto now = StuckWatch::Clock::now();
  EXPECT_FALSE(watch.check(now += seconds(3600)));
  EXPECT_FALSE(watch.check(now += milliseconds(500)));
  EXPECT_TRUE(watch.check(now += milliseconds(900)));
}

TEST(StuckWatch, work_that_ends_is_forgotten) {
  StuckWatch watch;
  auto now = StuckWatch::Clock::now();
  for (int i = 0; i < 100; ++i) {
    const auto work = watch.begin("a reference", 2);
    EXPECT_FALSE(watch.check(now += milliseconds(900)));
  }
  EXPECT_FALSE(watch.check(now += seconds(10)));
}

}  // namespace
}  // namespace numcheck::run
