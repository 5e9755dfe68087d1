// A worker process' life: its start, its end, and listening to it.
#include "worker/worker_process.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <csignal>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/strings.hpp"
#include "worker/pool.hpp"

namespace numcheck::worker {
namespace {

/// A killed worker ends at once, unless it hangs in the driver.
constexpr double kKillPatience_s = 10;
/// Time for an idle worker to give its device back (tearing down a CUDA context takes a few tenths of a second).
constexpr double kGoodbyePatience_s = 3;

/// Listening wakes up at least this often; a longer pause was not the worker's.
constexpr std::chrono::milliseconds kListenSlice{100};

int slice_until(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kListenSlice.count()));
}

}  // namespace

WorkerProcess::Clock::duration WorkerProcess::seconds(double value) {
  // Ten years: a clock's range is not exceeded by an absurd limit.
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::clamp(value, 0.0, 3e8)));
}

WorkerProcess::WorkerProcess(const WorkerOptions& options, const plan::Environment& environment) : options_(options) {
  SpawnedWorker spawned = spawn_worker(options.worker_argv, environment);
  pid_ = spawned.pid;
  channel_ = std::move(spawned.channel);
  output_ = OutputTail(std::move(spawned.output));
  alive_ = true;
}

WorkerProcess::~WorkerProcess() {
  if (alive_) {
    say_goodbye();
  }
}

void WorkerProcess::say_goodbye() {
  alive_ = false;
  channel_.close();
  const auto deadline = Clock::now() + seconds(kGoodbyePatience_s);
  // Its output is still read, so that it cannot block on a full pipe.
  while (Clock::now() < deadline && !wait_for_end(pid_, 0.002)) {
    output_.drain(options_.on_output);
  }
  bury(0);
}

void WorkerProcess::kill() {
  const std::lock_guard lock(kill_mutex_);
  interrupted_ = true;
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
  }
}

std::string WorkerProcess::bury(double patience_s) {
  alive_ = false;
  const bool ended_by_itself = wait_for_end(pid_, patience_s);
  const std::lock_guard lock(kill_mutex_);
  ::kill(-pid_, SIGKILL);  // also what it may have started itself
  const bool ended = wait_for_end(pid_, kKillPatience_s);
  const std::optional<int> status = reap(pid_);
  output_.drain(options_.on_output);
  pid_ = -1;
  channel_.close();
  if (!ended) {
    return "does not end even when killed: it hangs in the kernel";
  }
  if (!ended_by_itself) {
    return "closed its connection without ending";
  }
  return status ? describe_exit(*status) : "ended";
}

WorkerProcess::Heard WorkerProcess::listen(Message& message, Clock::time_point& deadline) {
  for (Clock::time_point last_look = Clock::now();;) {
    std::array<pollfd, 2> items{pollfd{channel_.fd(), POLLIN, 0}, pollfd{output_.fd(), POLLIN, 0}};
    const int ready = ::poll(items.data(), items.size(), slice_until(deadline));
    const Clock::duration pause = Clock::now() - last_look;
    last_look += pause;
    deadline += pause > 2 * kListenSlice ? pause : Clock::duration::zero();
    if (items[1].revents != 0 && ready > 0) {
      output_.drain(options_.on_output);
    }
    if (ready > 0 && items[0].revents != 0) {
      switch (channel_.receive(message, false)) {
        case Received::message:
          return Heard::message;
        case Received::closed:
          return Heard::closed;
        case Received::too_long:
          return Heard::too_long;
        case Received::nothing:
          break;
      }
    }
    if (ready >= 0 && Clock::now() >= deadline && (ready == 0 || items[0].revents == 0)) {
      return Heard::late;
    }
  }
}

Outcome WorkerProcess::unless_interrupted(Outcome::Kind kind, std::string reason) const {
  return interrupted_ ? Outcome{Outcome::Kind::error, std::string(kInterrupted), 0}
                      : Outcome{kind, std::move(reason) + output_.last_words(), 0};
}

Outcome WorkerProcess::died() {
  const std::string end = bury(kEndPatience_s);
  return unless_interrupted(Outcome::Kind::crashed, "the worker " + end);
}

Outcome WorkerProcess::talked_nonsense(std::string_view what) {
  bury(0);
  return unless_interrupted(Outcome::Kind::crashed, fmt::format("the worker sent something that cannot be: {}", what));
}

Outcome WorkerProcess::overran(double limit_s) {
  bury(0);
  return unless_interrupted(Outcome::Kind::timeout,
                            fmt::format("not done within {} s; the worker was killed", core::shortest(limit_s)));
}

std::variant<WorkerHello, StartFailure> WorkerProcess::start() {
  Message message;
  auto deadline = Clock::now() + seconds(options_.startup_timeout_s);
  switch (listen(message, deadline)) {
    case Heard::late:
      bury(0);
      return StartFailure{fmt::format("the worker was not ready within {} s{}",
                                      core::shortest(options_.startup_timeout_s), output_.last_words())};
    case Heard::closed: {
      const std::string how = died().reason;
      return StartFailure{interrupted_ ? how : how + " while it started"};
    }
    case Heard::too_long:
      return StartFailure{talked_nonsense("a message that is too long").reason};
    case Heard::message:
      break;
  }
  try {
    FromWorker decoded = decode_from_worker(message.text);
    if (auto* hello = std::get_if<Hello>(&decoded)) {
      return std::move(hello->facts);
    }
    if (const auto* failed = std::get_if<StartFailed>(&decoded)) {
      bury(kEndPatience_s);
      return StartFailure{failed->text, true};
    }
    throw ProtocolError("it did not say hello first");
  } catch (const ProtocolError& error) {
    return StartFailure{talked_nonsense(error.what()).reason};
  }
}

}  // namespace numcheck::worker
