// What is said to a worker process once it is ready: tasks and questions.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "worker/task_layout.hpp"
#include "worker/worker_process.hpp"

namespace numcheck::worker {
namespace {

/// The worker has not seen it.
Outcome never_sent(const std::exception& error) {
  return {Outcome::Kind::error, fmt::format("the case cannot be sent to a worker: {}", error.what()), 0};
}

}  // namespace

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
  const std::string text =
      encode_task(number, *task.c, execute_options(options_, *task.c), arenas, task.ports, layout.places);
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
