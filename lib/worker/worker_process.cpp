#include "worker/worker_process.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/strings.hpp"
#include "worker/pool.hpp"
#include "worker/task_layout.hpp"

namespace numcheck::worker {
namespace {

/// A killed worker exits at once unless it hangs in the driver.
constexpr double kKillTimeout_s = 10;
/// Time for an idle worker to release its device (tearing down a CUDA context takes a few tenths of a second).
constexpr double kShutdownTimeout_s = 3;

/// wait_for_message wakes up at least this often; longer gaps mean that this process was not running.
constexpr std::chrono::milliseconds kPollInterval{100};

int poll_timeout(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kPollInterval.count()));
}

/// The case never reached the worker.
Outcome send_failed(const std::exception& error) {
  return {Outcome::Kind::error, fmt::format("the case could not be sent to a worker: {}", error.what()), 0};
}

}  // namespace

WorkerProcess::Clock::duration WorkerProcess::seconds(double value) {
  // Capped at ten years, so that an absurd limit does not overflow the clock.
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
    shut_down();
  }
}

void WorkerProcess::shut_down() {
  alive_ = false;
  channel_.close();
  const auto deadline = Clock::now() + seconds(kShutdownTimeout_s);
  // Keep draining its output, so that it cannot block on a full pipe.
  while (Clock::now() < deadline && !wait_for_end(pid_, 0.002)) {
    output_.drain(options_.on_output);
  }
  terminate(0);
}

void WorkerProcess::kill() {
  const std::lock_guard lock(kill_mutex_);
  interrupted_ = true;
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
  }
}

std::string WorkerProcess::terminate(double grace_s) {
  alive_ = false;
  const bool exited_by_itself = wait_for_end(pid_, grace_s);
  const std::lock_guard lock(kill_mutex_);
  ::kill(-pid_, SIGKILL);  // including any processes that it started
  const bool ended = wait_for_end(pid_, kKillTimeout_s);
  const std::optional<int> status = reap(pid_);
  output_.drain(options_.on_output);
  pid_ = -1;
  channel_.close();
  if (!ended) {
    return "did not exit even after SIGKILL: it hangs in the kernel";
  }
  if (!exited_by_itself) {
    return "closed its connection without exiting";
  }
  return status ? describe_exit(*status) : "ended";
}

WorkerProcess::WaitResult WorkerProcess::wait_for_message(Message& message, Clock::time_point& deadline) {
  for (Clock::time_point last_poll = Clock::now();;) {
    std::array<pollfd, 2> items{pollfd{channel_.fd(), POLLIN, 0}, pollfd{output_.fd(), POLLIN, 0}};
    const int ready = ::poll(items.data(), items.size(), poll_timeout(deadline));
    const Clock::duration pause = Clock::now() - last_poll;
    last_poll += pause;
    deadline += pause > 2 * kPollInterval ? pause : Clock::duration::zero();
    if (items[1].revents != 0 && ready > 0) {
      output_.drain(options_.on_output);
    }
    if (ready > 0 && items[0].revents != 0) {
      switch (channel_.receive(message, false)) {
        case Received::message:
          return WaitResult::message;
        case Received::closed:
          return WaitResult::closed;
        case Received::too_long:
          return WaitResult::too_long;
        case Received::nothing:
          break;
      }
    }
    if (ready >= 0 && Clock::now() >= deadline && (ready == 0 || items[0].revents == 0)) {
      return WaitResult::timeout;
    }
  }
}

Outcome WorkerProcess::unless_interrupted(Outcome::Kind kind, std::string reason) const {
  return interrupted_ ? Outcome{Outcome::Kind::error, std::string(kInterrupted), 0}
                      : Outcome{kind, std::move(reason) + output_.last_output(), 0};
}

Outcome WorkerProcess::died() {
  const std::string end = terminate(kExitTimeout_s);
  return unless_interrupted(Outcome::Kind::crashed, "the worker " + end);
}

Outcome WorkerProcess::protocol_violation(std::string_view what) {
  terminate(0);
  return unless_interrupted(Outcome::Kind::crashed, fmt::format("the worker broke the protocol: {}", what));
}

Outcome WorkerProcess::timed_out(double limit_s) {
  terminate(0);
  return unless_interrupted(Outcome::Kind::timeout,
                            fmt::format("timed out after {} s; the worker was killed", core::shortest(limit_s)));
}

std::variant<WorkerHello, StartFailure> WorkerProcess::start() {
  Message message;
  auto deadline = Clock::now() + seconds(options_.startup_timeout_s);
  switch (wait_for_message(message, deadline)) {
    case WaitResult::timeout:
      terminate(0);
      return StartFailure{fmt::format("the worker was not ready within {} s{}",
                                      core::shortest(options_.startup_timeout_s), output_.last_output())};
    case WaitResult::closed: {
      const std::string how = died().reason;
      return StartFailure{interrupted_ ? how : how + " during startup"};
    }
    case WaitResult::too_long:
      return StartFailure{protocol_violation("a message is too long").reason};
    case WaitResult::message:
      break;
  }
  try {
    FromWorker decoded = decode_from_worker(message.text);
    if (auto* hello = std::get_if<Hello>(&decoded)) {
      return std::move(hello->facts);
    }
    if (const auto* failed = std::get_if<StartFailed>(&decoded)) {
      terminate(kExitTimeout_s);
      return StartFailure{failed->text, true};
    }
    throw ProtocolError("its first message is not hello");
  } catch (const ProtocolError& error) {
    return StartFailure{protocol_violation(error.what()).reason};
  }
}

bool WorkerProcess::send_task(std::uint64_t number, const Task& task) {
  const TaskLayout layout = layout_of(task);
  std::vector<ArenaInfo> arenas;
  std::vector<int> descriptors;
  for (const Arena* arena : layout.arenas) {
    if (!known_arenas_.contains(arena->id)) {
      arenas.push_back({arena->id, arena->mapping->size(), arena->use == BlockUse::output});
      descriptors.push_back(arena->worker_fd.get());
    }
  }
  const std::string text = encode_task(number, *task.c, execute_options(options_, *task.c), arenas, layout.places);
  const bool sent = channel_.send(text, descriptors);
  for (const ArenaInfo& arena : arenas) {
    known_arenas_.insert(arena.id);
  }
  return sent;
}

void WorkerProcess::check_report(const RunReport& report, const Task& task) const {
  for (const OutputDigest& output : report.outputs) {
    const bool known = std::any_of(task.ports.begin(), task.ports.end(), [&](const HostPort& port) {
      const op::Role role = port.port->role;
      return port.port->name == output.port && (role == op::Role::output || role == op::Role::amax);
    });
    if (!known) {
      throw ProtocolError(fmt::format("the case has no output \"{}\"", printable(output.port, 40)));
    }
  }
}

bool WorkerProcess::device_lost_before_start(const FromWorker& decoded, std::uint64_t number, bool started) {
  const auto* lost = std::get_if<Lost>(&decoded);
  if (lost == nullptr || lost->task != number || started) {
    return false;
  }
  terminate(kExitTimeout_s);
  death_reason_ = unless_interrupted(Outcome::Kind::crashed,
                                     fmt::format("the worker's device was lost between two cases: {}", lost->text))
                      .reason;
  return true;
}

std::optional<Outcome> WorkerProcess::handle_message(Running& running, FromWorker decoded) {
  if (const auto* started = std::get_if<Started>(&decoded)) {
    if (started->task == running.number && !std::exchange(running.started, true)) {
      running.deadline = Clock::now() + seconds(running.limit_s);
      running.spans.start();
      return std::nullopt;
    }
  } else if (const auto* done = std::get_if<RunDone>(&decoded)) {
    if (done->task == running.number && running.started) {
      check_report(done->report, running.task);
      const auto paused = Clock::now();
      running.spans.hand_over(done->report, running.on_run);
      running.deadline += Clock::now() - paused;
      return channel_.send(encode(Ack{running.number})) ? std::nullopt : std::optional(died());
    }
  } else if (auto* ended = std::get_if<TaskEnded>(&decoded)) {
    if (ended->task == running.number) {
      device_lost_ = ended->outcome.kind == Outcome::Kind::crashed;
      return std::move(ended->outcome);
    }
  }
  throw ProtocolError("unexpected message");
}

Outcome WorkerProcess::end_after(WaitResult received, double limit_s) {
  if (received == WaitResult::timeout) {
    return timed_out(limit_s);
  }
  return received == WaitResult::closed ? died() : protocol_violation("a message is too long");
}

std::optional<Outcome> WorkerProcess::run(std::uint64_t number, const Task& task, const RunSink& on_run) {
  TaskSpans spans(task);
  try {
    if (!send_task(number, task)) {
      death_reason_ = died().reason;
      return std::nullopt;
    }
  } catch (const std::exception& error) {
    return send_failed(error);
  }
  const double limit_s = task.c->timeout_s.value_or(options_.timeout_s);
  Running running{number, task,    on_run,
                  spans,  limit_s, Clock::now() + seconds(std::max(limit_s, options_.answer_timeout_s))};
  Message message;
  for (;;) {
    const WaitResult received = wait_for_message(message, running.deadline);
    if (received == WaitResult::closed && !running.started) {
      death_reason_ = died().reason;
      return std::nullopt;
    }
    if (received != WaitResult::message) {
      return end_after(received, limit_s);
    }
    try {
      FromWorker decoded = decode_from_worker(message.text);
      if (device_lost_before_start(decoded, number, running.started)) {
        return std::nullopt;
      }
      if (auto outcome = handle_message(running, std::move(decoded))) {
        return outcome;
      }
    } catch (const ProtocolError& error) {
      return protocol_violation(error.what());
    }
  }
}

std::optional<Outcome> WorkerProcess::next_answer(std::uint64_t number, bool& started) {
  const double limit_s = options_.answer_timeout_s;
  auto deadline = Clock::now() + seconds(limit_s);
  Message message;
  for (;;) {
    const WaitResult received = wait_for_message(message, deadline);
    if (received == WaitResult::closed && !started) {
      death_reason_ = died().reason;
      return std::nullopt;
    }
    if (received != WaitResult::message) {
      return end_after(received, limit_s);
    }
    try {
      FromWorker decoded = decode_from_worker(message.text);
      if (device_lost_before_start(decoded, number, started)) {
        return std::nullopt;
      }
      if (auto* answer = std::get_if<Answer>(&decoded); answer != nullptr && answer->task == number && started) {
        device_lost_ = answer->outcome.kind == Outcome::Kind::crashed;
        return std::move(answer->outcome);
      }
      const auto* begun = std::get_if<Started>(&decoded);
      if (begun == nullptr || begun->task != number || std::exchange(started, true)) {
        throw ProtocolError("unexpected message");
      }
    } catch (const ProtocolError& error) {
      return protocol_violation(error.what());
    }
  }
}

std::optional<std::size_t> WorkerProcess::ask(std::uint64_t number, std::span<const plan::Case* const> cases,
                                              const AnswerSink& on_answer) {
  EncodedQuestion question;
  try {
    const ExecuteOptions execute = execute_options(options_, *cases.front());
    const auto other = std::ranges::find_if(
        cases, [&](const plan::Case* c) { return execute_options(options_, *c).inject != execute.inject; });
    question = encode_question(number, {cases.begin(), other}, execute);
    if (!channel_.send(question.text)) {
      death_reason_ = died().reason;
      return std::nullopt;
    }
  } catch (const std::exception& error) {
    on_answer(0, send_failed(error));
    return 1;
  }
  bool started = false;
  std::size_t answered = 0;
  while (answered < question.cases && alive_ && !device_lost_) {
    const auto answer = next_answer(number, started);
    if (!answer) {
      return std::nullopt;
    }
    on_answer(answered++, *answer);
  }
  return answered;
}

}  // namespace numcheck::worker
