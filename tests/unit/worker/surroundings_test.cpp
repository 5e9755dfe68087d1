// Environments that provide no threads or descriptors, or stop the coordinator for a while.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fake.hpp"
#include "run/interrupt.hpp"

namespace numcheck::worker::fake {
namespace {

using Kind = Outcome::Kind;

constexpr int kRight = 0;
constexpr int kImpossible = 77;
constexpr unsigned kHangs_s = 30;

/// The exit status of a child that could not set its limits; the test is then skipped.
struct RightOrImpossible {
  int* status;
  bool operator()(int wait_status) const {
    *status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    return *status == kRight || *status == kImpossible;
  }
};

/// From now on this process gets no threads. The limit does not apply to root, so this switches to another user.
bool forbid_threads() {
  ::alarm(kHangs_s);
  const rlimit none{0, 0};
  const uid_t stranger = 300'000 + static_cast<uid_t>(::getpid() % 100'000);
  if (::setrlimit(RLIMIT_NPROC, &none) != 0 || (::geteuid() == 0 && ::setuid(stranger) != 0)) {
    return false;
  }
  try {
    std::thread([] {}).join();
    return false;
  } catch (const std::system_error&) {
    return true;
  }
}

[[noreturn]] void finish(bool right) {
  std::_Exit(right ? kRight : 1);
}

template <class Body>
bool refuses_thread(const Body& body) {
  try {
    body();
    std::fprintf(stderr, "no exception\n");
    return false;
  } catch (const core::EnvironmentError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return contains(error.what(), "cannot start a thread");
  }
}

/// Runs the body in a process that gets no threads: it must soon return true.
void expect_right_without_threads(bool (*body)()) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  int status = -1;
  EXPECT_EXIT(
      {
        if (!forbid_threads()) {
          std::_Exit(kImpossible);
        }
        finish(body());
      },
      RightOrImpossible{&status}, "");
  if (status == kImpossible) {
    GTEST_SKIP() << "the number of threads cannot be limited here";
  }
}

bool cases_and_questions_are_errors() {
  WorkerPool pool(worker_options());
  Collector collector(pool);
  const Done& done = collector.submit(make_case("add"));
  const plan::Case asked = make_case("add");
  std::vector<Outcome> answers;
  pool.ask({{&asked, &asked}, [&](std::size_t, const Outcome& outcome) { answers.push_back(outcome); }});
  pool.wait_idle();
  std::fprintf(stderr, "%d %s, %zu answers\n", done.ends, done.outcome.reason.c_str(), answers.size());
  return done.ends == 1 && done.outcome.kind == Kind::error && contains(done.outcome.reason, "cannot start a thread") &&
         answers.size() == 2 && answers[1].kind == Kind::error &&
         contains(answers[1].reason, "cannot start a thread") && refuses_thread([&] { (void)pool.hello({}); });
}

TEST(NoThreadDeathTest, cases_and_questions_end_as_errors) {
  expect_right_without_threads(&cases_and_questions_are_errors);
}

TEST(NoThreadDeathTest, an_in_process_pool_says_so) {
  expect_right_without_threads([] {
    WorkerOptions options = worker_options();
    options.in_process = true;
    return refuses_thread([&] { const WorkerPool pool(options); });
  });
}

TEST(NoThreadDeathTest, handling_interrupts_says_so_each_time) {
  expect_right_without_threads([] {
    const bool first = refuses_thread([] { const run::Interrupt interrupt; });
    return first && refuses_thread([] { const run::Interrupt interrupt; });
  });
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

/// Whether the case is done, or failed with an error that names the missing resource.
bool ends_well(const WorkerOptions& options) {
  try {
    const Done done = run_alone(options, make_case("add"));
    std::fprintf(stderr, "%s\n", done.outcome.reason.c_str());
    return done.outcome.kind == Kind::done || contains(done.outcome.reason, "Too many open files");
  } catch (const core::EnvironmentError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return contains(error.what(), "Too many open files");
  }
}

/// Runs a case with ever fewer descriptors left.
bool every_number_of_descriptors_ends_well() {
  ::alarm(kHangs_s);
  WorkerOptions options = worker_options();
  options.max_consecutive_start_failures = 1;
  const std::size_t before = open_descriptors();
  bool right = true;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (rlim_t most = before - 1; most < before + 12; ++most) {
    const rlimit few{most, limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    right = ends_well(options) && right;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    right = open_descriptors() == before && right;
  }
  return right;
}

TEST(NoDescriptorDeathTest, is_reported_and_leaks_nothing) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizers look at memory through pipes of their own";
#endif
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(finish(every_number_of_descriptors_ends_well()), testing::ExitedWithCode(kRight), "");
}

/// This executable as a process that runs a case with a time limit; reads its output.
class Coordinator {
 public:
  Coordinator(std::string act, std::string timeout_s) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string name = "run_test";
    std::string role = "outcome";
    std::array<char*, 5> arguments{name.data(), role.data(), act.data(), timeout_s.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ends[0];
  }
  ~Coordinator() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(output_);
  }
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  std::string line() const {
    std::string text;
    for (char byte = 0; ::read(output_, &byte, 1) == 1 && byte != '\n';) {
      text += byte;
    }
    return text;
  }
  /// Stops the coordinator, but not its worker.
  void pause(std::chrono::milliseconds time) const {
    ::kill(pid_, SIGSTOP);
    std::this_thread::sleep_for(time);
    ::kill(pid_, SIGCONT);
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

TEST(Stopped, time_while_the_coordinator_was_stopped_does_not_count) {
  using namespace std::chrono_literals;
  const Coordinator coordinator("slow", "2");  // 1.3 s
  ASSERT_EQ(coordinator.line(), "ready");
  std::this_thread::sleep_for(300ms);
  coordinator.pause(2500ms);
  EXPECT_EQ(coordinator.line(), "done");
}

TEST(Stopped, a_hanging_worker_still_times_out) {
  using namespace std::chrono_literals;
  const Coordinator coordinator("hang", "1");
  ASSERT_EQ(coordinator.line(), "ready");
  std::this_thread::sleep_for(300ms);
  coordinator.pause(1500ms);
  const auto start = Clock::now();
  EXPECT_TRUE(contains(coordinator.line(), "timed out after 1 s"));
  EXPECT_LT(seconds_since(start), 10);
}

}  // namespace
}  // namespace numcheck::worker::fake
