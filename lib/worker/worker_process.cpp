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

/// The worker has not seen it.
Outcome never_sent(const std::exception& error) {
  return {Outcome::Kind::error, fmt::format("the case cannot be sent to a worker: {}", error.what()), 0};
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

bool WorkerProcess::give(std::uint64_t number, const Task& task) {
  const TaskLayout layout = layout_of(task);
  std::vector<ArenaFact> arenas;
  std::vector<int> descriptors;
  for (const Arena* arena : layout.arenas) {
    if (!known_arenas_.contains(arena->id)) {
      arenas.push_back({arena->id, arena->mapping->size(), arena->use == BlockUse::output});
      descriptors.push_back(arena->shown.get());
    }
  }
  const std::string text = encode_task(number, *task.c, execute_options(options_, *task.c), arenas, layout.places);
  const bool sent = channel_.send(text, descriptors);
  for (const ArenaFact& arena : arenas) {
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

bool WorkerProcess::lost_before(const FromWorker& decoded, std::uint64_t number, bool started) {
  const auto* lost = std::get_if<Lost>(&decoded);
  if (lost == nullptr || lost->task != number || started) {
    return false;
  }
  bury(kEndPatience_s);
  death_ = unless_interrupted(Outcome::Kind::crashed,
                              fmt::format("the worker's device was lost between two cases: {}", lost->text))
               .reason;
  return true;
}

std::optional<Outcome> WorkerProcess::hear(Running& running, FromWorker decoded) {
  if (const auto* started = std::get_if<Started>(&decoded)) {
    if (started->task == running.number && !std::exchange(running.started, true)) {
      running.deadline = Clock::now() + seconds(running.limit_s);
      return std::nullopt;
    }
  } else if (const auto* done = std::get_if<RunDone>(&decoded)) {
    if (done->task == running.number && running.started) {
      check_report(done->report, running.task);
      const auto paused = Clock::now();
      running.on_run(done->report);
      running.deadline += Clock::now() - paused;
      return channel_.send(encode(Ack{running.number})) ? std::nullopt : std::optional(died());
    }
  } else if (auto* ended = std::get_if<TaskEnded>(&decoded)) {
    if (ended->task == running.number) {
      spent_ = ended->outcome.kind == Outcome::Kind::crashed;
      return std::move(ended->outcome);
    }
  }
  throw ProtocolError("a message that does not belong here");
}

Outcome WorkerProcess::lost_while(Heard heard, double limit_s) {
  if (heard == Heard::late) {
    return overran(limit_s);
  }
  return heard == Heard::closed ? died() : talked_nonsense("a message that is too long");
}

std::optional<Outcome> WorkerProcess::run(std::uint64_t number, const Task& task, const RunSink& on_run) {
  try {
    if (!give(number, task)) {
      death_ = died().reason;
      return std::nullopt;
    }
  } catch (const std::exception& error) {
    return never_sent(error);
  }
  const double limit_s = task.c->timeout_s.value_or(options_.timeout_s);
  Running running{number, task, on_run, limit_s, Clock::now() + seconds(std::max(limit_s, options_.answer_timeout_s))};
  Message message;
  for (;;) {
    const Heard heard = listen(message, running.deadline);
    if (heard == Heard::closed && !running.started) {
      death_ = died().reason;
      return std::nullopt;
    }
    if (heard != Heard::message) {
      return lost_while(heard, limit_s);
    }
    try {
      FromWorker decoded = decode_from_worker(message.text);
      if (lost_before(decoded, number, running.started)) {
        return std::nullopt;
      }
      if (auto outcome = hear(running, std::move(decoded))) {
        return outcome;
      }
    } catch (const ProtocolError& error) {
      return talked_nonsense(error.what());
    }
  }
}

std::optional<Outcome> WorkerProcess::next_answer(std::uint64_t number, bool& started) {
  const double limit_s = options_.answer_timeout_s;
  auto deadline = Clock::now() + seconds(limit_s);
  Message message;
  for (;;) {
    const Heard heard = listen(message, deadline);
    if (heard == Heard::closed && !started) {
      death_ = died().reason;
      return std::nullopt;
    }
    if (heard != Heard::message) {
      return lost_while(heard, limit_s);
    }
    try {
      FromWorker decoded = decode_from_worker(message.text);
      if (lost_before(decoded, number, started)) {
        return std::nullopt;
      }
      if (auto* answer = std::get_if<Answer>(&decoded); answer != nullptr && answer->task == number && started) {
        spent_ = answer->outcome.kind == Outcome::Kind::crashed;
        return std::move(answer->outcome);
      }
      const auto* begun = std::get_if<Started>(&decoded);
      if (begun == nullptr || begun->task != number || std::exchange(started, true)) {
        throw ProtocolError("a message that does not belong here");
      }
    } catch (const ProtocolError& error) {
      return talked_nonsense(error.what());
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
      death_ = died().reason;
      return std::nullopt;
    }
  } catch (const std::exception& error) {
    on_answer(0, never_sent(error));
    return 1;
  }
  bool started = false;
  std::size_t answered = 0;
  while (answered < question.cases && alive_ && !spent_) {
    const auto answer = next_answer(number, started);
    if (!answer) {
      return std::nullopt;
    }
    on_answer(answered++, *answer);
  }
  return answered;
}

}  // namespace numcheck::worker
