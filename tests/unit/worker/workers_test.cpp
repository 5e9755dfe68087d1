// The worker pool when all goes well.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fake.hpp"

namespace numcheck::worker::fake {
namespace {

using Kind = Outcome::Kind;

TEST(Workers, run_a_case_in_another_process) {
  const Done done = run_alone(worker_options(), make_case("add", 5));
  EXPECT_EQ(done.outcome.kind, Kind::done) << done.outcome.reason;
  EXPECT_EQ(done.outcome.device_s, 0.5);
  EXPECT_EQ(done.ends, 1);
  ASSERT_EQ(done.runs.size(), 1U);
  EXPECT_EQ(done.outputs[0], (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(done.runs[0].label, "run 0");
  EXPECT_EQ(done.runs[0].device_s, 0.25);
  EXPECT_EQ(done.runs[0].outputs.at(0).port, "y");
  EXPECT_EQ(done.runs[0].outputs.at(0).digest, core::digest_of(std::as_bytes(std::span(done.outputs[0]))));
  EXPECT_NE(detail(done.runs[0], "pid"), std::to_string(::getpid()));
  EXPECT_EQ(detail(done.runs[0], "group"), detail(done.runs[0], "pid")) << "Ctrl-C must not reach a worker";
}

TEST(Workers, wait_for_each_algorithm_to_be_read) {
  const Done done = run_alone(worker_options(), make_case("several", 4));
  ASSERT_EQ(done.outputs.size(), 3U);
  EXPECT_EQ(done.outputs[0], (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(done.outputs[1], (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(done.outputs[2], (std::vector<float>{3, 4, 5, 6}));
}

TEST(Workers, pass_on_unsupported) {
  const Done done = run_alone(worker_options(), make_case("unsupported"));
  EXPECT_EQ(done.outcome.kind, Kind::unsupported);
  EXPECT_EQ(done.outcome.reason, "the fake device cannot");
}

TEST(Workers, turn_exceptions_into_errors_and_live_on) {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  const Done& known = collector.submit(make_case("throw"));
  const Done& odd = collector.submit(make_case("throw_odd"));
  const Done& good = collector.submit(make_case("add"));
  pool.wait_idle();
  EXPECT_EQ(known.outcome.kind, Kind::error);
  EXPECT_EQ(known.outcome.reason, "EnvironmentError: out of fake memory");
  EXPECT_EQ(odd.outcome.reason, "OddError: odd");
  EXPECT_EQ(good.outcome.kind, Kind::done);
}

TEST(Workers, handle_empty_tensors) {
  const Done done = run_alone(worker_options(), make_case("add", 0));
  EXPECT_EQ(done.outcome.kind, Kind::done) << done.outcome.reason;
  EXPECT_TRUE(done.outputs.at(0).empty());
}

TEST(Workers, say_what_they_are) {
  WorkerPool pool(worker_options());
  const WorkerHello hello = pool.hello({});
  EXPECT_EQ(hello.device.name, "fake");
  EXPECT_EQ(hello.device.sm, 90);
  EXPECT_EQ(hello.libraries, (std::vector<std::pair<std::string, std::string>>{{"fakelib", "1.2.3"}}));
}

TEST(Workers, serve_one_environment_with_one_process_and_reuse_memory) {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  std::set<std::string> pids;
  std::set<std::string> addresses;
  for (int i = 0; i < 5; ++i) {
    const Done& done = collector.submit(make_case("add", 100'000));
    pool.wait_idle();
    pids.insert(detail(done.runs.at(0), "pid"));
    addresses.insert(detail(done.runs.at(0), "address"));
  }
  EXPECT_EQ(pids.size(), 1U);
  EXPECT_EQ(addresses.size(), 1U) << "the same block of the same arena, mapped once";
}

TEST(Workers, apply_and_unset_variables) {
  ASSERT_EQ(::setenv("NVIDIA_TF32_OVERRIDE", "1", 1), 0);
  WorkerPool pool(worker_options());
  Collector collector(pool);
  std::vector<const Done*> inherited;
  std::vector<const Done*> zero;
  std::vector<const Done*> unset;
  for (int i = 0; i < 4; ++i) {
    inherited.push_back(&collector.submit(make_case("add")));
    zero.push_back(&collector.submit(make_case("add", 16, {{"NVIDIA_TF32_OVERRIDE", "0"}})));
    unset.push_back(&collector.submit(make_case("add", 16, {{"NVIDIA_TF32_OVERRIDE", std::nullopt}})));
  }
  pool.wait_idle();
  ::unsetenv("NVIDIA_TF32_OVERRIDE");
  std::set<std::string> pids;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(detail(inherited[i]->runs.at(0), "override"), "1");
    EXPECT_EQ(detail(zero[i]->runs.at(0), "override"), "0");
    EXPECT_EQ(detail(unset[i]->runs.at(0), "override"), "unset");
    for (const auto* done : {inherited[i], zero[i], unset[i]}) {
      pids.insert(detail(done->runs.at(0), "pid"));
    }
  }
  EXPECT_EQ(pids.size(), 3U) << "a process for each environment";
}

TEST(Workers, of_many_environments_share_few_slots) {
  WorkerOptions options = worker_options();
  options.max_workers = 2;
  WorkerPool pool(options);
  Collector collector(pool);
  std::vector<const Done*> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(&collector.submit(make_case("add", 16, {{"NVIDIA_TF32_OVERRIDE", std::to_string(i)}})));
  }
  pool.wait_idle();
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(all[i]->outcome.kind, Kind::done) << all[i]->outcome.reason;
    EXPECT_EQ(detail(all[i]->runs.at(0), "override"), std::to_string(i));
  }
}

TEST(Workers, end_while_the_pool_lives_if_nothing_else_is_expected) {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  const Done& first = collector.submit(make_case("add"));
  const Done& second = collector.submit(make_case("add"));
  pool.expect_no_more();
  pool.wait_idle();
  ASSERT_EQ(second.outcome.kind, Kind::done) << second.outcome.reason;
  const std::string pid = detail(second.runs.at(0), "pid");
  EXPECT_EQ(detail(first.runs.at(0), "pid"), pid) << "both were known";
  EXPECT_TRUE(is_gone(std::stoi(pid), 5));
  const Done& unexpected = collector.submit(make_case("add"));
  pool.wait_idle();
  EXPECT_EQ(unexpected.outcome.kind, Kind::done) << unexpected.outcome.reason;
}

TEST(Workers, several_for_one_environment) {
  WorkerOptions options = worker_options();
  options.workers_per_environment = 3;
  WorkerPool pool(options);
  Collector collector(pool);
  std::vector<const Done*> all;
  for (int i = 0; i < 60; ++i) {
    all.push_back(&collector.submit(make_case("several", 1000)));
  }
  pool.wait_idle();
  std::set<std::string> pids;
  for (const Done* done : all) {
    ASSERT_EQ(done->outcome.kind, Kind::done);
    pids.insert(detail(done->runs.at(0), "pid"));
  }
  EXPECT_LE(pids.size(), 3U);
}

TEST(Workers, may_print) {
  std::string printed;
  WorkerOptions options = worker_options();
  options.on_output = [&](std::string_view text) { printed += text; };
  const Done done = run_alone(options, make_case("print"));
  EXPECT_EQ(done.outcome.kind, Kind::done) << done.outcome.reason;
  EXPECT_NE(printed.find("libraries print on stdout"), std::string::npos);
}

TEST(Workers, may_print_more_than_a_pipe_holds) {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  const Done& first = collector.submit(make_case("print_much"));
  const Done& second = collector.submit(make_case("print_much"));
  pool.wait_idle();
  EXPECT_EQ(first.outcome.kind, Kind::done) << first.outcome.reason;
  EXPECT_EQ(second.outcome.kind, Kind::done) << second.outcome.reason;
}

TEST(Workers, refuse_ports_outside_the_pool) {
  WorkerPool pool(worker_options());
  const plan::Case c = make_case("add", 4);
  const auto ports = c.op->ports(c.params, *c.mode);
  std::vector<float> own(4);
  Task task = make_task(pool, c, ports);
  for (HostPort& port : task.ports) {
    port.bytes = std::as_writable_bytes(std::span(own));
  }
  EXPECT_THROW(pool.submit(task), core::InternalError);
  task.blocks.clear();
  EXPECT_THROW(pool.submit(task), core::InternalError);
}

TEST(Workers, exceptions_of_callbacks_do_not_end_the_program) {
  WorkerPool pool(worker_options());
  const plan::Case c = make_case("several", 4);
  const auto ports = c.op->ports(c.params, *c.mode);
  Outcome outcome;
  const auto submit = [&](RunSink on_run, std::function<void(const Outcome&)> on_end) {
    Task task = make_task(pool, c, ports);
    task.on_run = std::move(on_run);
    task.on_end = std::move(on_end);
    pool.submit(std::move(task));
  };
  submit([](const RunReport&) { throw std::runtime_error("cannot compare"); },
         [&](const Outcome& end) { outcome = end; });
  pool.wait_idle();
  EXPECT_EQ(outcome.kind, Kind::error);
  EXPECT_EQ(outcome.reason, "runtime_error: cannot compare");
  submit({}, [](const Outcome&) { throw core::IoError("disk full"); });
  EXPECT_THROW(pool.wait_idle(), core::IoError);
  submit({}, [&](const Outcome& end) { outcome = end; });
  pool.wait_idle();
  EXPECT_EQ(outcome.reason, "interrupted") << "a run that cannot record its results stops";
}

TEST(Workers, end_with_the_pool) {
  int pid = 0;
  {
    WorkerPool pool(worker_options());
    Collector collector(pool);
    const Done& done = collector.submit(make_case("add"));
    pool.wait_idle();
    pid = std::stoi(detail(done.runs.at(0), "pid"));
    EXPECT_FALSE(is_gone(pid, 0));
  }
  EXPECT_TRUE(is_gone(pid, 0)) << "reaped, not only dead";
  EXPECT_NE(::access(("/proc/" + std::to_string(pid)).c_str(), F_OK), 0);
}

TEST(Workers, run_a_thousand_tiny_tasks_quickly) {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  (void)pool.hello({});
  const auto start = Clock::now();
  std::vector<const Done*> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back(&collector.submit(make_case("add", 8)));
  }
  pool.wait_idle();
  const double elapsed_s = seconds_since(start);
  for (const Done* done : all) {
    ASSERT_EQ(done->outcome.kind, Kind::done);
  }
  std::printf("[ measured ] %.0f tasks/s\n", 1000 / elapsed_s);
  RecordProperty("tasks_per_s", static_cast<int>(1000 / elapsed_s));
  EXPECT_LT(elapsed_s, 20);
}

}  // namespace
}  // namespace numcheck::worker::fake
