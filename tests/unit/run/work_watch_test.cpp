// Work beyond its time limit is stopped, work that does not return is reported once; slow checks and work that ends are not.
#include "run/work_watch.hpp"

#include <string>

#include <gtest/gtest.h>

#include "core/cancel.hpp"

namespace numcheck::run {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(WorkWatch, work_beyond_its_limit_is_reported_once) {
  WorkWatch watch;
  const auto work = watch.begin("the reference of gemm", {.stuck_s = 2});
  auto now = WorkWatch::Clock::now();
  EXPECT_FALSE(watch.check(now += milliseconds(900)));
  EXPECT_FALSE(watch.check(now += milliseconds(900)));
  EXPECT_EQ(watch.check(now += milliseconds(900)), "the reference of gemm is stuck: not finished after 2 s");
  EXPECT_FALSE(watch.check(now += seconds(5)));
}

TEST(WorkWatch, time_without_checks_does_not_count) {
  WorkWatch watch;
  const auto work = watch.begin("a reference", {.stuck_s = 2});
  auto now = WorkWatch::Clock::now();
  EXPECT_FALSE(watch.check(now += seconds(3600)));
  EXPECT_FALSE(watch.check(now += milliseconds(500)));
  EXPECT_TRUE(watch.check(now += milliseconds(900)));
}

TEST(WorkWatch, work_that_ends_is_forgotten) {
  WorkWatch watch;
  auto now = WorkWatch::Clock::now();
  for (int i = 0; i < 100; ++i) {
    const auto work = watch.begin("a reference", {.stuck_s = 2});
    EXPECT_FALSE(watch.check(now += milliseconds(900)));
  }
  EXPECT_FALSE(watch.check(now += seconds(10)));
}

TEST(WorkWatch, work_beyond_its_time_limit_is_stopped_and_says_so) {
  WorkWatch watch;
  const auto work = watch.begin("the reference of gemm", {.time_s = 2});
  const auto other = watch.begin("another", {.time_s = 60});
  const auto start = WorkWatch::Clock::now();
  const auto overrun = [&] {
    work.run([&] {
      for (int i = 1; i < 10; ++i) {
        (void)watch.check(start + i * milliseconds(900));
        core::throw_if_cancelled();
      }
    });
  };
  try {
    overrun();
    FAIL() << "it was not stopped";
  } catch (const OutOfTime& limit) {
    EXPECT_EQ(std::string(limit.what()),
              "the reference of gemm took longer than 2 s on the host (--timeout, or timeout_s of the plan)");
  }
  other.run([] { core::throw_if_cancelled(); });
  core::throw_if_cancelled();  // nor is what follows on this thread
}

TEST(WorkWatch, the_limit_counts_anew_for_each_part) {
  WorkWatch watch;
  const auto work = watch.begin("a reference", {.time_s = 2});
  auto now = WorkWatch::Clock::now();
  for (int i = 0; i < 20; ++i) {
    work.run([&] { (void)watch.check(now += milliseconds(900)); });
    work.run([] { core::throw_if_cancelled(); });
  }
}

TEST(WorkWatch, all_work_can_be_stopped_for_another_reason) {
  WorkWatch watch;
  const auto work = watch.begin("a reference", {.time_s = 2});
  watch.stop_all();
  EXPECT_THROW(work.run([] { core::throw_if_cancelled(); }), core::Cancelled);
  const auto later = watch.begin("another", {});
  EXPECT_THROW(later.run([] { core::throw_if_cancelled(); }), core::Cancelled);
}

TEST(WorkWatch, knows_how_long_the_oldest_has_been_there) {
  WorkWatch watch;
  EXPECT_EQ(watch.longest_s(), 0);
  const auto work = watch.begin("a reference", {});
  const auto start = WorkWatch::Clock::now();
  work.run([] {});
  EXPECT_GE(watch.longest_s(start + seconds(5)), 5);
}

}  // namespace
}  // namespace numcheck::run
