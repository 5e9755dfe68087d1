// Workers that die, hang, send invalid messages or never start.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fake.hpp"

namespace numcheck::worker::fake {
namespace {

using Kind = Outcome::Kind;

/// The bad case costs only itself: the cases before and after it are done, by different processes.
Done among_good_ones(const plan::Case& bad, WorkerOptions options = worker_options()) {
  WorkerPool pool(std::move(options));
  Collector collector(pool);
  const Done& before = collector.submit(make_case("add", 3));
  Done& middle = collector.submit(bad);
  const Done& after = collector.submit(make_case("add", 3));
  pool.wait_idle();
  EXPECT_EQ(before.outcome.kind, Kind::done) << before.outcome.reason;
  EXPECT_EQ(after.outcome.kind, Kind::done) << after.outcome.reason;
  EXPECT_EQ(middle.ends, 1);
  if (before.runs.size() == 1 && after.runs.size() == 1) {
    EXPECT_EQ(after.outputs[0], (std::vector<float>{1, 2, 3}));
    EXPECT_NE(detail(before.runs[0], "pid"), detail(after.runs[0], "pid"));
    EXPECT_TRUE(is_gone(std::stoi(detail(before.runs[0], "pid")), 0));
  }
  return std::move(middle);
}

TEST(Failures, killed_in_mid_case) {
  const auto start = Clock::now();
  const Done done = among_good_ones(make_case("sigkill"));
  EXPECT_EQ(done.outcome.kind, Kind::crashed);
  EXPECT_TRUE(contains(done.outcome.reason, "was killed by SIGKILL")) << done.outcome.reason;
  EXPECT_LT(seconds_since(start), 5) << "seen at once, not after the time limit";
}

TEST(Failures, the_worker_volunteers_when_memory_runs_out) {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  const Done& done = collector.submit(make_case("add"));
  pool.wait_idle();
  std::ifstream file("/proc/" + detail(done.runs.at(0), "pid") + "/oom_score_adj");
  int adjustment = 0;
  file >> adjustment;
  EXPECT_EQ(adjustment, 1000);
}

TEST(Failures, segmentation_fault) {
  const Done done = among_good_ones(make_case("segfault"));
  EXPECT_EQ(done.outcome.kind, Kind::crashed);
  EXPECT_TRUE(contains(done.outcome.reason, "SIGSEGV")) << done.outcome.reason;
}

TEST(Failures, the_last_output_of_an_aborted_worker_is_shown) {
  const Done done = among_good_ones(make_case("abort"));
  EXPECT_EQ(done.outcome.kind, Kind::crashed);
  EXPECT_TRUE(contains(done.outcome.reason, "SIGABRT")) << done.outcome.reason;
  EXPECT_TRUE(contains(done.outcome.reason, "assertion `a == b' failed")) << done.outcome.reason;
}

TEST(Failures, exit) {
  const Done done = among_good_ones(make_case("exit7"));
  EXPECT_EQ(done.outcome.kind, Kind::crashed);
  EXPECT_EQ(done.outcome.reason, "the worker exited with status 7");
}

TEST(Failures, lost_device_context_replaces_the_worker) {
  const Done done = among_good_ones(make_case("lost_device"));
  EXPECT_EQ(done.outcome.kind, Kind::crashed);
  EXPECT_EQ(done.outcome.reason, "an illegal memory access was encountered");
  EXPECT_EQ(done.runs.size(), 1U);
}

TEST(Failures, hang_is_killed_after_the_limit_of_the_case) {
  for (const char* act : {"hang", "spin", "late_hang"}) {
    plan::Case c = make_case(act);
    c.timeout_s = 0.3;
    const auto start = Clock::now();
    const Done done = among_good_ones(c);
    EXPECT_EQ(done.outcome.kind, Kind::timeout) << done.outcome.reason;
    EXPECT_TRUE(contains(done.outcome.reason, "timed out after 0.3 s")) << done.outcome.reason;
    EXPECT_GE(seconds_since(start), 0.3);
    EXPECT_LT(seconds_since(start), 5);
    EXPECT_EQ(done.runs.size(), std::string_view(act) == "late_hang" ? 1U : 0U);
  }
}

TEST(Failures, hang_is_killed_after_the_common_limit) {
  WorkerOptions options = worker_options();
  options.timeout_s = 0.2;
  EXPECT_EQ(among_good_ones(make_case("hang"), options).outcome.kind, Kind::timeout);
}

TEST(Failures, reading_the_outputs_does_not_count_as_time_of_the_worker) {
  WorkerOptions options = worker_options();
  options.timeout_s = 0.4;
  WorkerPool pool(options);
  const plan::Case c = make_case("several", 4);
  const auto ports = c.op->ports(c.params, *c.mode);
  Task task = make_task(pool, c, ports);
  Outcome outcome;
  task.on_run = [](const RunReport&) { ::usleep(250'000); };
  task.on_end = [&](const Outcome& end) { outcome = end; };
  pool.submit(std::move(task));
  pool.wait_idle();
  EXPECT_EQ(outcome.kind, Kind::done) << outcome.reason;
}

TEST(Failures, an_invalid_message_is_a_crash_with_an_explanation) {
  for (const char* act :
       {"corrupt", "too_long", "wrong_task", "nan_time", "unknown_port", "no_second_end", "closes_socket"}) {
    const Done done = among_good_ones(make_case(act));
    EXPECT_EQ(done.outcome.kind, Kind::crashed) << act;
    const bool closed = std::string_view(act) == "closes_socket";
    EXPECT_TRUE(contains(done.outcome.reason, closed ? "worker" : "broke the protocol")) << done.outcome.reason;
  }
  EXPECT_TRUE(contains(among_good_ones(make_case("unknown_port")).outcome.reason, "no output \"z\""));
}

/// Six cases that all end as `act` says, and one of another environment.
std::vector<Outcome> six_in_a_row(WorkerOptions options, const std::string& act) {
  WorkerPool pool(std::move(options));
  Collector collector(pool);
  std::vector<const Done*> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(&collector.submit(make_case(act)));
  }
  const Done& other = collector.submit(make_case("add", 16, {{"NVIDIA_TF32_OVERRIDE", "0"}}));
  pool.wait_idle();
  EXPECT_EQ(other.outcome.kind, Kind::done) << "another environment is another matter";
  std::vector<Outcome> outcomes;
  for (const Done* done : all) {
    outcomes.push_back(done->outcome);
  }
  return outcomes;
}

/// Inputs are shared with other cases and adjacent to them: a stray write must not corrupt those.
TEST(Failures, a_worker_that_writes_to_an_input_costs_its_own_case) {
  const Done done = among_good_ones(make_case("writes_input"));
  EXPECT_EQ(done.outcome.kind, Kind::crashed);
  // A sanitizer's report contains it, too.
  EXPECT_TRUE(contains(done.outcome.reason, "SEGV")) << done.outcome.reason;
}

TEST(Failures, every_crash_costs_its_own_case_only) {
  WorkerOptions options = worker_options();
  options.max_consecutive_start_failures = 2;
  for (const char* act : {"exit7", "lost_device"}) {
    for (const Outcome& outcome : six_in_a_row(options, act)) {
      EXPECT_EQ(outcome.kind, Kind::crashed) << act << ": " << outcome.reason;
    }
  }
}

TEST(Failures, crashes_and_timeouts_in_a_row_are_limited) {
  WorkerOptions options = worker_options();
  options.timeout_s = 0.2;
  for (const auto& [act, kind] : {std::pair{"exit7", Kind::crashed}, std::pair{"hang", Kind::timeout}}) {
    options.max_consecutive_crashes = kind == Kind::crashed ? 2 : 100;
    options.max_consecutive_timeouts = kind == Kind::timeout ? 2 : 100;
    const std::vector<Outcome> outcomes = six_in_a_row(options, act);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(outcomes[i].kind, kind);
    }
    for (std::size_t i = 3; i < 6; ++i) {
      EXPECT_EQ(outcomes[i].kind, Kind::error);
      EXPECT_TRUE(contains(outcomes[i].reason, "3 workers in a row died")) << outcomes[i].reason;
      EXPECT_TRUE(contains(outcomes[i].reason, outcomes[0].reason)) << outcomes[i].reason;
    }
  }
}

TEST(Failures, a_finished_case_resets_the_bound) {
  WorkerOptions options = worker_options();
  options.max_consecutive_crashes = 1;
  WorkerPool pool(options);
  Collector collector(pool);
  const Done* last = nullptr;
  for (int i = 0; i < 4; ++i) {
    (void)collector.submit(make_case("exit7"));
    last = &collector.submit(make_case("add"));
  }
  pool.wait_idle();
  EXPECT_EQ(last->outcome.kind, Kind::done) << last->outcome.reason;
}

TEST(Failures, a_worker_that_cannot_work_says_why) {
  WorkerPool pool(worker_options({"--start=fail"}));
  try {
    (void)pool.hello({});
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "cuda:7 does not exist: this machine has 1 device");
  }
  Collector collector(pool);
  const Done& done = collector.submit(make_case("add"));
  pool.wait_idle();
  EXPECT_EQ(done.outcome.kind, Kind::error);
  EXPECT_EQ(done.outcome.reason, "cuda:7 does not exist: this machine has 1 device");
}

TEST(Failures, workers_that_do_not_start) {
  const std::vector<std::pair<std::string, std::string>> expected{
      {"--start=exit", "exited with status 5 during startup; its last output: libfake.so"},
      {"--start=invalid", "it is not JSON"},
      {"--start=old", "protocol 0"}};
  for (const auto& [start, words] : expected) {
    const Done done = run_alone(worker_options({start}), make_case("add"));
    EXPECT_EQ(done.outcome.kind, Kind::error);
    EXPECT_TRUE(contains(done.outcome.reason, "4 workers in a row died")) << done.outcome.reason;
    const auto tail = start == "--start=exit" ? std::string("libfake.so") : words;
    EXPECT_TRUE(contains(done.outcome.reason, tail)) << done.outcome.reason;
  }
}

TEST(Failures, a_worker_that_never_says_ready) {
  WorkerOptions options = worker_options({"--start=hang"});
  options.startup_timeout_s = 0.2;
  options.max_consecutive_start_failures = 1;
  const auto start = Clock::now();
  const Done done = run_alone(options, make_case("add"));
  EXPECT_EQ(done.outcome.kind, Kind::error);
  EXPECT_TRUE(contains(done.outcome.reason, "not ready within 0.2 s")) << done.outcome.reason;
  EXPECT_LT(seconds_since(start), 5);
}

/// Starts this executable as a coordinator; returns its process ID and that of its worker, which it prints.
std::pair<pid_t, int> start_coordinator(const char* act) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::array<std::string, 3> texts{"run_test", "coordinate", act};
  std::array<char*, 4> arguments{texts[0].data(), texts[1].data(), texts[2].data(), nullptr};
  pid_t pid = -1;
  EXPECT_EQ(::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  for (char byte = 0; ::read(ends[0], &byte, 1) == 1 && byte != '\n';) {
    text += byte;
  }
  ::close(ends[0]);
  return {pid, text.empty() ? -1 : std::stoi(text)};
}

TEST(Failures, no_worker_outlives_its_coordinator) {
  for (const char* act : {"hang", "spin", "idle"}) {
    const auto [coordinator, worker] = start_coordinator(act);
    ASSERT_GT(worker, 0);
    ::usleep(200'000);  // let the case start
    EXPECT_FALSE(is_gone(worker, 0));
    ::kill(coordinator, SIGKILL);
    ::waitpid(coordinator, nullptr, 0);
    EXPECT_TRUE(is_gone(worker, 5)) << act;
  }
}

TEST(Failures, a_worker_started_by_hand_says_so) {
  EXPECT_THROW((void)worker_main(STDIN_FILENO, {}, &make_executor, &lookup), core::UsageError);
}

}  // namespace
}  // namespace numcheck::worker::fake
