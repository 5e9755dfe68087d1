#include "run/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/file_descriptor.hpp"
#include "worker/start_thread.hpp"

namespace numcheck::run {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

// Globals, because a signal handler has no other state; lock-free, because it must be async-signal-safe.
std::atomic<int> write_end = -1;
std::atomic<int> signal_count = 0;
std::atomic<int> first_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void handle_signal(int signal) {
  const int saved_errno = errno;
  const int number = ++signal_count;
  if (number == 1) {
    first_signal = signal;
  }
  if (number > 2) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  const char byte = 1;
  [[maybe_unused]] const ssize_t written = ::write(write_end, &byte, 1);
  errno = saved_errno;
}

}  // namespace

class Interrupt::Impl {
 public:
  explicit Impl(std::function<void(int)> on_signal) : on_signal_(std::move(on_signal)) {
    if (write_end >= 0) {
      throw core::InternalError("only one Interrupt may exist at a time");
    }
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw core::IoError("cannot create a pipe: " + std::generic_category().message(errno));
    }
    read_end_ = core::FileDescriptor(ends[0]);
    own_write_end_ = core::FileDescriptor(ends[1]);
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    signal_count = 0;
    first_signal = 0;
    thread_ = worker::start_thread("to handle interrupts", [this] { listen(); });
    write_end = ends[1];
    install();
  }

  ~Impl() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      if (installed_[i]) {
        ::sigaction(kSignals[i], &previous_[i], nullptr);
      }
    }
    const char stop = 0;
    [[maybe_unused]] const ssize_t written = ::write(write_end, &stop, 1);
    thread_.join();
    write_end = -1;
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool wait_for(int wanted, double seconds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return signal_count >= wanted; });
  }

 private:
  void install() {
    struct sigaction action{};
    action.sa_handler = &handle_signal;
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &previous_[i]);
      installed_[i] = previous_[i].sa_handler != SIG_IGN;
      if (installed_[i]) {
        ::sigaction(kSignals[i], &action, nullptr);
      }
    }
  }

  void listen() {
    int handled = 0;
    for (;;) {
      char byte = 0;
      const ssize_t got = ::read(read_end_.get(), &byte, 1);
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0 || byte == 0) {
        return;
      }
      ++handled;
      {
        const std::lock_guard lock(mutex_);
      }
      changed_.notify_all();
      if (on_signal_ && handled <= 2) {
        on_signal_(handled);
      }
    }
  }

  std::function<void(int)> on_signal_;
  core::FileDescriptor read_end_;
  core::FileDescriptor own_write_end_;
  std::array<struct sigaction, kSignals.size()> previous_{};
  std::array<bool, kSignals.size()> installed_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

Interrupt::Interrupt(std::function<void(int)> on_signal) : impl_(std::make_unique<Impl>(std::move(on_signal))) {}
Interrupt::~Interrupt() = default;

int Interrupt::count() const noexcept {
  return std::min(2, signal_count.load());
}

core::ExitCode Interrupt::exit_code() const noexcept {
  switch (first_signal) {
    case SIGINT:
      return core::ExitCode::interrupted;
    case SIGTERM:
      return core::ExitCode::terminated;
    case SIGHUP:
      return core::ExitCode::hung_up;
    default:
      return core::ExitCode::success;
  }
}

bool Interrupt::wait_for(int wanted, double seconds) {
  return impl_->wait_for(wanted, seconds);
}

}  // namespace numcheck::run
