// Stopping: signals, cancelling waiting tasks, killing running ones.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "run/interrupt.hpp"
#include "tests/unit/worker/fake.hpp"

namespace numcheck::worker::fake {
namespace {

using run::Interrupt;

using Kind = Outcome::Kind;

TEST(Cancel, pending_tasks_end_and_running_ones_finish) {
  WorkerPool pool(worker_options());
  (void)pool.hello({});
  const plan::Case c = make_case("several", 4);
  const auto ports = c.op->ports(c.params, *c.mode);
  Task task = make_task(pool, c, ports);
  std::atomic<int> runs = 0;
  Outcome outcome;
  task.on_run = [&](const RunReport&) {
    if (++runs == 1) {
      pool.cancel_pending();
    }
  };
  task.on_end = [&](const Outcome& end) { outcome = end; };
  pool.submit(std::move(task));
  Collector collector(pool);
  std::vector<const Done*> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(&collector.submit(make_case("add")));
  }
  pool.wait_idle();
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(outcome.kind, Kind::done);
  for (const Done* done : waiting) {
    EXPECT_EQ(done->ends, 1);
    EXPECT_EQ(done->outcome.kind, Kind::error);
    EXPECT_EQ(done->outcome.reason, "interrupted");
    EXPECT_TRUE(done->runs.empty());
  }
  const Done& later = collector.submit(make_case("add"));
  pool.wait_idle();
  EXPECT_EQ(later.outcome.reason, "interrupted");
}

TEST(Cancel, does_not_wait_for_a_worker_that_is_starting) {
  WorkerPool pool(worker_options({"--start=hang"}));
  Collector collector(pool);
  const Done& done = collector.submit(make_case("add"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto start = Clock::now();
  pool.cancel_pending();
  pool.wait_idle();
  EXPECT_EQ(done.outcome.reason, "interrupted");
  EXPECT_LT(seconds_since(start), 5);
}

TEST(Cancel, kill_ends_what_runs) {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  (void)pool.hello({});
  const Done& hanging = collector.submit(make_case("spin"));
  const Done& waiting = collector.submit(make_case("add"));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto start = Clock::now();
  pool.kill_workers();
  pool.wait_idle();
  EXPECT_LT(seconds_since(start), 5);
  EXPECT_EQ(hanging.outcome.kind, Kind::error);
  EXPECT_EQ(hanging.outcome.reason, "interrupted");
  EXPECT_EQ(waiting.outcome.reason, "interrupted");
}

TEST(Cancel, destroying_the_pool_ends_everything) {
  const auto start = Clock::now();
  std::atomic<int> ends = 0;
  const plan::Case c = make_case("spin", 4);
  const auto ports = c.op->ports(c.params, *c.mode);
  {
    WorkerPool pool(worker_options());
    (void)pool.hello({});
    for (int i = 0; i < 2; ++i) {
      Task task = make_task(pool, c, ports);
      task.on_end = [&](const Outcome& end) {
        EXPECT_EQ(end.reason, "interrupted");
        ++ends;
      };
      pool.submit(std::move(task));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(ends, 2);
  EXPECT_LT(seconds_since(start), 5);
}

TEST(Signals, are_counted_and_reported) {
  std::atomic<int> reported = 0;
  {
    Interrupt interrupt([&](int count) { reported = count; });
    EXPECT_FALSE(interrupt.requested());
    EXPECT_EQ(interrupt.exit_code(), core::ExitCode::success);
    EXPECT_FALSE(interrupt.wait_for(1, 0.01));
    ::raise(SIGTERM);
    EXPECT_TRUE(interrupt.wait_for(1, 5));
    EXPECT_TRUE(interrupt.requested());
    EXPECT_EQ(interrupt.exit_code(), core::ExitCode::terminated);
    ::raise(SIGINT);
    EXPECT_TRUE(interrupt.wait_for(2, 5));
    EXPECT_EQ(interrupt.count(), 2);
    EXPECT_EQ(interrupt.exit_code(), core::ExitCode::terminated) << "the first decides";
    for (int i = 0; i < 500 && reported < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  EXPECT_EQ(reported, 2);
  Interrupt again;
  EXPECT_EQ(again.count(), 0);
  EXPECT_THROW(Interrupt(), core::InternalError);
  ::raise(SIGINT);
  EXPECT_EQ(again.exit_code(), core::ExitCode::interrupted);
}

TEST(Signals, a_closed_terminal_is_reported_like_a_termination) {
  Interrupt interrupt;
  ::raise(SIGHUP);
  EXPECT_TRUE(interrupt.wait_for(1, 5));
  EXPECT_EQ(interrupt.exit_code(), core::ExitCode::hung_up);
  EXPECT_EQ(static_cast<int>(interrupt.exit_code()), 129);
}

TEST(Signals, stop_a_hanging_run_at_the_second) {
  WorkerPool pool(worker_options());
  (void)pool.hello({});
  Collector collector(pool);
  const Done& done = collector.submit(make_case("hang"));
  const Interrupt interrupt([&](int count) { count == 1 ? pool.cancel_pending() : pool.kill_workers(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ::raise(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(done.ends, 0);
  ::raise(SIGINT);
  pool.wait_idle();
  EXPECT_EQ(done.outcome.reason, "interrupted");
}

TEST(SignalsDeathTest, the_third_ends_the_process) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const Interrupt interrupt;
        ::raise(SIGINT);
        ::raise(SIGINT);
        ::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(SignalsDeathTest, an_ignored_signal_stays_ignored) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const int signal : {SIGINT, SIGHUP}) {
    EXPECT_EXIT(
        {
          std::signal(signal, SIG_IGN);
          const Interrupt interrupt;
          ::raise(signal);
          std::_Exit(interrupt.requested() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace numcheck::worker::fake
