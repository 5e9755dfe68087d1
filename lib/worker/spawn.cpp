#include "worker/spawn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {
namespace {

void check(int error, const char* what) {
  if (error != 0) {
    throw core::EnvironmentError(
        fmt::format("cannot start a worker: {}: {}", what, std::generic_category().message(error)));
  }
}

class FileActions {
 public:
  FileActions() { check(posix_spawn_file_actions_init(&actions_), "posix_spawn_file_actions_init"); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void open_null(int fd) {
    check(posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDONLY, 0), "/dev/null");
  }
  void copy(int from, int to) { check(posix_spawn_file_actions_adddup2(&actions_, from, to), "dup2"); }
  void close_from(int fd) { check(posix_spawn_file_actions_addclosefrom_np(&actions_, fd), "closefrom"); }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

class Attributes {
 public:
  Attributes() {
    check(posix_spawnattr_init(&attributes_), "posix_spawnattr_init");
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    const auto flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    check(posix_spawnattr_setflags(&attributes_, static_cast<short>(flags)), "posix_spawnattr_setflags");
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

std::vector<std::string> merged_environment(const plan::Environment& environment) {
  std::vector<std::string> merged;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (environment.find(std::string(text.substr(0, text.find('=')))) == environment.end()) {
      merged.emplace_back(text);
    }
  }
  for (const auto& [name, value] : environment) {
    const bool valid_name = !name.empty() && name.find_first_of(std::string_view("=\0", 2)) == std::string::npos;
    if (!valid_name || (value && value->find('\0') != std::string::npos)) {
      throw core::EnvironmentError(
          fmt::format("cannot set the environment variable \"{}\": invalid name or value", name));
    }
    if (value) {
      merged.push_back(name + '=' + *value);
    }
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

/// A copy numbered above the descriptors that the file actions overwrite, so that no dup2 closes the source of a later
/// one.
core::FileDescriptor lifted(const core::FileDescriptor& source) {
  const int fd = ::fcntl(source.get(), F_DUPFD_CLOEXEC, kWorkerSocketFd + 1);
  check(fd < 0 ? errno : 0, "fcntl");
  return core::FileDescriptor(fd);
}

}  // namespace

SpawnedWorker spawn_worker(std::span<const std::string> arguments, const plan::Environment& environment) {
  auto [ours, theirs] = Channel::make_pair();
  std::array<int, 2> ends{};
  check(::pipe2(ends.data(), O_CLOEXEC) != 0 ? errno : 0, "pipe");
  core::FileDescriptor output(ends[0]);
  const core::FileDescriptor write_end(ends[1]);
  ::fcntl(output.get(), F_SETFL, O_NONBLOCK);

  const core::FileDescriptor socket = lifted(theirs.release());
  const core::FileDescriptor output_end = lifted(write_end);
  FileActions actions;
  actions.open_null(STDIN_FILENO);
  actions.copy(output_end.get(), STDOUT_FILENO);
  actions.copy(output_end.get(), STDERR_FILENO);
  actions.copy(socket.get(), kWorkerSocketFd);
  actions.close_from(kWorkerSocketFd + 1);
  const Attributes attributes;

  std::vector<std::string> argv{"te-numcheck"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = merged_environment(environment);
  SpawnedWorker worker;
  check(::posix_spawn(&worker.pid, "/proc/self/exe", actions.get(), attributes.get(), pointers(argv).data(),
                      pointers(variables).data()),
        "posix_spawn");
  worker.channel = std::move(ours);
  worker.output = std::move(output);
  return worker;
}

std::string describe_exit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    const char* name = ::sigabbrev_np(signal);
    const char* description = ::sigdescr_np(signal);
    return fmt::format("was killed by {}{} ({})", name == nullptr ? "signal " : "SIG",
                       name == nullptr ? std::to_string(signal) : std::string(name),
                       signal == SIGKILL ? "by another process, or by the system because it ran out of memory"
                                         : (description == nullptr ? "no description" : description));
  }
  return fmt::format("exited with status {}", WEXITSTATUS(wait_status));
}

bool wait_for_end(pid_t pid, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  auto pause = std::chrono::microseconds(20);
  for (;;) {
    siginfo_t info{};
    const int result = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    if ((result == 0 && info.si_pid == pid) || (result != 0 && errno == ECHILD)) {
      return true;
    }
    if (Clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}

std::optional<int> reap(pid_t pid) {
  int status = 0;
  pid_t got = -1;
  do {
    got = ::waitpid(pid, &status, WNOHANG);
  } while (got < 0 && errno == EINTR);
  return got == pid ? std::optional<int>(status) : std::nullopt;
}

}  // namespace numcheck::worker
