// The test executable in its three roles: tests, worker, and a coordinator that a test kills.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fake.hpp"

namespace {

/// Runs a case that never ends, prints the worker's process ID once it computes, and waits to be killed.
int be_a_coordinator(const std::string& act) {
  using namespace numcheck::worker;
  WorkerPool pool(fake::worker_options());
  const WorkerHello hello = pool.hello({});
  auto first = fake::make_case("add");
  fake::Collector collector(pool);
  const fake::Done& done = collector.submit(first);
  pool.wait_idle();
  std::printf("%s\n", fake::detail(done.runs.at(0), "pid").c_str());
  std::fflush(stdout);
  if (act != "idle") {
    collector.submit(fake::make_case(act));
  }
  for (;;) {
    ::pause();
  }
}

/// Runs one case with a time limit; prints "ready" before it and how it ended after it.
int tell_outcome(const std::string& act, double timeout_s) {
  using namespace numcheck::worker;
  WorkerOptions options = fake::worker_options();
  options.timeout_s = timeout_s;
  WorkerPool pool(std::move(options));
  (void)pool.hello({});
  std::printf("ready\n");
  std::fflush(stdout);
  fake::Collector collector(pool);
  const fake::Done& done = collector.submit(fake::make_case(act));
  pool.wait_idle();
  std::printf("%s\n", done.outcome.kind == Outcome::Kind::done ? "done" : done.outcome.reason.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() >= 2 && arguments[0] == "exec" && arguments[1] == "--worker") {
    try {
      return numcheck::worker::fake::serve(arguments);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 2;
    }
  }
  if (arguments.size() == 2 && arguments[0] == "coordinate") {
    return be_a_coordinator(arguments[1]);
  }
  if (arguments.size() == 3 && arguments[0] == "outcome") {
    return tell_outcome(arguments[1], std::stod(arguments[2]));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
