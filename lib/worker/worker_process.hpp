// One child process of the coordinator, from its start to its end.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/output_tail.hpp"
#include "worker/protocol.hpp"
#include "worker/spawn.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {

/// A worker that could not be started.
struct StartFailure {
  std::string reason;
  bool permanent = false;  ///< the worker itself said that it cannot work here: trying again is useless
};

/// Used by one thread, but for kill(). The destructor ends the process, politely if it is idle.
class WorkerProcess {
 public:
  /// Spawns; throws core::EnvironmentError.
  WorkerProcess(const WorkerOptions& options, const plan::Environment& environment);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Waits until the worker has said hello. After a failure the process is gone.
  [[nodiscard]] std::variant<WorkerHello, StartFailure> start();

  /// Runs one task to its end. If the worker dies, hangs or talks nonsense, the outcome says so and alive() is false.
  /// Nothing: the worker died before it began, which is not the task's fault. `on_run` must not throw.
  [[nodiscard]] std::optional<Outcome> run(std::uint64_t number, const Task& task, const RunSink& on_run);

  /// Asks whether the first of `cases` can run, as many as fit into a message; returns how many were answered. If the
  /// worker dies, hangs or talks nonsense, that is the last answer, and alive() is false. Nothing: the worker died
  /// before it began. `on_answer` must not throw.
  [[nodiscard]] std::optional<std::size_t> ask(std::uint64_t number, std::span<const plan::Case* const> cases,
                                               const AnswerSink& on_answer);

  /// How the worker died before it began, when run() or ask() returned nothing.
  [[nodiscard]] const std::string& death() const noexcept { return death_; }
  [[nodiscard]] bool alive() const noexcept { return alive_; }
  /// The worker reported that its device is lost: it ends by itself and takes no more tasks or questions.
  [[nodiscard]] bool spent() const noexcept { return spent_; }
  /// From any thread: SIGKILL to the worker's process group. What runs on it ends as error "interrupted".
  void kill();

 private:
  using Clock = std::chrono::steady_clock;
  /// A worker that closed its socket, or said that it ends, is about to end.
  static constexpr double kEndPatience_s = 1;
  enum class Heard { message, closed, too_long, late };
  struct Running {
    std::uint64_t number;
    const Task& task;
    const RunSink& on_run;
    double limit_s;
    Clock::time_point deadline;
    bool started = false;
  };

  [[nodiscard]] static Clock::duration seconds(double value);
  /// Waits for a message until the deadline, which moves by the time that this process could not listen (stopped by
  /// SIGSTOP, suspended, starved): the worker is not late if nobody heard it.
  [[nodiscard]] Heard listen(Message& message, Clock::time_point& deadline);
  /// Ends the process, at the latest after `patience_s`, and reaps it; says how it ended: "was killed by ...".
  std::string bury(double patience_s);
  /// The outcome of what runs, unless it is an interrupt that ended it.
  [[nodiscard]] Outcome unless_interrupted(Outcome::Kind kind, std::string reason) const;
  [[nodiscard]] Outcome died();
  [[nodiscard]] Outcome talked_nonsense(std::string_view what);
  [[nodiscard]] Outcome overran(double limit_s);
  /// The outcome when something else than a message was heard.
  [[nodiscard]] Outcome lost_while(Heard heard, double limit_s);
  /// True if the worker says that its device was lost before it began with `number`; it is buried then.
  [[nodiscard]] bool lost_before(const FromWorker& decoded, std::uint64_t number, bool started);
  /// Acts on one message; the outcome if the task has ended.
  [[nodiscard]] std::optional<Outcome> hear(Running& running, FromWorker decoded);
  /// The answer to the next case of a question; nothing if the worker died before it began.
  [[nodiscard]] std::optional<Outcome> next_answer(std::uint64_t number, bool& started);
  [[nodiscard]] bool give(std::uint64_t number, const Task& task);
  void check_report(const RunReport& report, const Task& task) const;
  void say_goodbye();

  const WorkerOptions& options_;
  std::mutex kill_mutex_;  ///< guards pid_ against being reused by the system while it is killed
  pid_t pid_ = -1;
  std::atomic<bool> interrupted_ = false;
  bool alive_ = false;
  bool spent_ = false;
  std::string death_;
  Channel channel_;
  OutputTail output_;
  std::set<std::uint64_t> known_arenas_;
};

}  // namespace numcheck::worker
