// Workers that die between cases, or before they begin a case.
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fake.hpp"

namespace numcheck::worker::fake {
namespace {

using Kind = Outcome::Kind;

TEST(IdleDeaths, killed_while_idle_costs_no_case) {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  const Done& before = collector.submit(make_case("add"));
  pool.wait_idle();
  const int pid = std::stoi(detail(before.runs.at(0), "pid"));
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(is_gone(pid, 5));
  // No pause: a zombie's socket may still look open, so the case may be sent to it or not.
  const Done& after = collector.submit(make_case("add"));
  pool.wait_idle();
  EXPECT_EQ(after.outcome.kind, Kind::done) << after.outcome.reason;
  EXPECT_EQ(after.ends, 1);
}

TEST(IdleDeaths, killed_before_it_begins_a_case_costs_no_case) {
  for (const bool asked : {false, true}) {
    WorkerPool pool(worker_options());
    Collector collector(pool);
    const Done& before = collector.submit(make_case("add"));
    pool.wait_idle();
    const int pid = std::stoi(detail(before.runs.at(0), "pid"));
    ::kill(pid, SIGSTOP);
    const plan::Case c = make_case("add");
    Outcome answer{Kind::error, "no outcome yet", 0};
    const Done* after = nullptr;
    if (asked) {
      pool.ask({{&c}, [&answer](std::size_t, const Outcome& outcome) { answer = outcome; }});
    } else {
      after = &collector.submit(c);
    }
    // Long enough for the message to be in the stopped worker's socket; otherwise this repeats the previous test.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::kill(pid, SIGKILL);
    pool.wait_idle();
    if (asked) {
      EXPECT_EQ(answer.kind, Kind::done) << answer.reason;
    } else {
      EXPECT_EQ(after->outcome.kind, Kind::done) << after->outcome.reason;
      EXPECT_NE(detail(after->runs.at(0), "pid"), std::to_string(pid));
    }
  }
}

/// A worker that dies before it begins this case, each time: the case is at fault after all.
TEST(IdleDeaths, dying_twice_before_it_begins_a_case_costs_the_case) {
  WorkerPool pool(worker_options({"--deaf"}));
  Collector collector(pool);
  const Done& deadly = collector.submit(make_case("add", 1313));
  const Done& good = collector.submit(make_case("add", 3));
  pool.wait_idle();
  EXPECT_EQ(deadly.outcome.kind, Kind::crashed);
  EXPECT_TRUE(contains(deadly.outcome.reason, "exited with status 3")) << deadly.outcome.reason;
  EXPECT_EQ(good.outcome.kind, Kind::done) << good.outcome.reason;
  const plan::Case c = make_case("add", 1313);
  const plan::Case d = make_case("add", 3);
  std::vector<Outcome> answers;
  pool.ask({{&c}, [&](std::size_t, const Outcome& outcome) { answers.push_back(outcome); }});
  pool.ask({{&d}, [&](std::size_t, const Outcome& outcome) { answers.push_back(outcome); }});
  pool.wait_idle();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].kind, Kind::crashed);
  EXPECT_EQ(answers[1].kind, Kind::done) << answers[1].reason;
}

}  // namespace
}  // namespace numcheck::worker::fake
