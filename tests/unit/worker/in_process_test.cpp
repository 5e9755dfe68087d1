// --in-process: the same results without children.
#include <unistd.h>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fake.hpp"

namespace numcheck::worker::fake {
namespace {

using Kind = Outcome::Kind;

WorkerOptions in_process() {
  WorkerOptions options = worker_options();
  options.in_process = true;
  return options;
}

TEST(InProcess, gives_the_same_results_as_a_worker) {
  const Done here = run_alone(in_process(), make_case("several", 4));
  const Done there = run_alone(worker_options(), make_case("several", 4));
  EXPECT_EQ(here.outcome.kind, Kind::done);
  EXPECT_EQ(here.outputs, there.outputs);
  ASSERT_EQ(here.runs.size(), 3U);
  EXPECT_EQ(here.runs[2].outputs[0].digest, there.runs[2].outputs[0].digest);
  EXPECT_EQ(detail(here.runs[0], "pid"), std::to_string(::getpid()));
}

TEST(InProcess, says_what_the_device_is) {
  WorkerPool pool(in_process());
  EXPECT_EQ(pool.hello({}).device.name, "fake");
}

TEST(InProcess, refuses_environments) {
  WorkerPool pool(in_process());
  EXPECT_THROW((void)pool.hello({.environment = {{"NVIDIA_TF32_OVERRIDE", "0"}}}), core::UsageError);
  Collector collector(pool);
  try {
    (void)collector.submit(make_case("add", 4, {{"NVIDIA_TF32_OVERRIDE", "0"}}));
    FAIL();
  } catch (const core::UsageError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("NVIDIA_TF32_OVERRIDE"), std::string::npos) << text;
    EXPECT_NE(text.find("without --in-process"), std::string::npos) << text;
  }
  pool.wait_idle();
}

TEST(InProcess, turns_exceptions_into_errors) {
  const Done done = run_alone(in_process(), make_case("throw"));
  EXPECT_EQ(done.outcome.kind, Kind::error);
  EXPECT_EQ(done.outcome.reason, "EnvironmentError: out of fake memory");
}

TEST(InProcess, a_device_that_does_not_exist) {
  WorkerOptions options = in_process();
  options.factory = [](const machine::DeviceChoice&) -> std::unique_ptr<Executor> {
    throw core::EnvironmentError("no such device");
  };
  WorkerPool pool(options);
  EXPECT_THROW((void)pool.hello({}), core::EnvironmentError);
  Collector collector(pool);
  const Done& done = collector.submit(make_case("add"));
  pool.wait_idle();
  EXPECT_EQ(done.outcome.kind, Kind::error);
  EXPECT_EQ(done.outcome.reason, "EnvironmentError: no such device");
}

TEST(InProcess, cancels_waiting_tasks) {
  WorkerPool pool(in_process());
  Collector collector(pool);
  pool.cancel_pending();
  const Done& done = collector.submit(make_case("add"));
  pool.wait_idle();
  EXPECT_EQ(done.outcome.reason, "interrupted");
  EXPECT_EQ(done.ends, 1);
}

}  // namespace
}  // namespace numcheck::worker::fake
