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
#include "worker/task_spans.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {

/// A worker that could not be started.
struct StartFailure {
  std::string reason;
  bool permanent = false;  ///< the worker itself reported that it cannot run here; do not retry
};

/// Not thread-safe except for kill(). The destructor ends the process, giving an idle one time to shut down.
class WorkerProcess {
 public:
  /// Spawns; throws core::EnvironmentError.
  WorkerProcess(const WorkerOptions& options, const plan::Environment& environment);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Waits for the worker's hello. After a failure the process is gone.
  [[nodiscard]] std::variant<WorkerHello, StartFailure> start();

  /// Runs one task to its end. If the worker dies, hangs or breaks the protocol, the outcome says so and alive() is
  /// false. Returns nothing if the worker died before it started the task, which then is not to blame. `on_run` must
  /// not throw.
  [[nodiscard]] std::optional<Outcome> run(std::uint64_t number, const Task& task, const RunSink& on_run);

  /// Asks whether the first of `cases` can run, as many as fit into a message, and returns how many were answered. If
  /// the worker dies, hangs or breaks the protocol, that is the last answer and alive() is false. Returns nothing if
  /// the worker died before it started. `on_answer` must not throw.
  [[nodiscard]] std::optional<std::size_t> ask(std::uint64_t number, std::span<const plan::Case* const> cases,
                                               const AnswerSink& on_answer);

  /// How the worker died, if run() or ask() returned nothing.
  [[nodiscard]] const std::string& death_reason() const noexcept { return death_reason_; }
  [[nodiscard]] bool alive() const noexcept { return alive_; }
  /// The worker reported that its device is lost; it exits by itself and accepts no more tasks or questions.
  [[nodiscard]] bool device_lost() const noexcept { return device_lost_; }
  /// From any thread: sends SIGKILL to the worker's process group. The running task ends as error "interrupted".
  void kill();

 private:
  using Clock = std::chrono::steady_clock;
  /// For a worker that has closed its socket or announced that it exits.
  static constexpr double kExitTimeout_s = 1;
  enum class WaitResult { message, closed, too_long, timeout };
  struct Running {
    std::uint64_t number;
    const Task& task;
    const RunSink& on_run;
    TaskSpans& spans;
    double limit_s;
    Clock::time_point deadline;
    bool started = false;
  };

  [[nodiscard]] static Clock::duration seconds(double value);
  /// Waits for a message until the deadline. Time in which this process itself was not running (SIGSTOP, suspend, CPU
  /// starvation) is added to the deadline, so that the worker is not blamed for it.
  [[nodiscard]] WaitResult wait_for_message(Message& message, Clock::time_point& deadline);
  /// Waits up to `grace_s` for the process to exit, kills it if it has not, and reaps it. Returns how it ended: "was
  /// killed by ...".
  std::string terminate(double grace_s);
  /// The outcome with this kind and reason, or "interrupted" after kill().
  [[nodiscard]] Outcome unless_interrupted(Outcome::Kind kind, std::string reason) const;
  [[nodiscard]] Outcome died();
  [[nodiscard]] Outcome protocol_violation(std::string_view what);
  [[nodiscard]] Outcome timed_out(double limit_s);
  /// The outcome if waiting for a message gave something else.
  [[nodiscard]] Outcome end_after(WaitResult heard, double limit_s);
  /// True if the worker reports that its device was lost before it started `number`; terminates the worker.
  [[nodiscard]] bool device_lost_before_start(const FromWorker& decoded, std::uint64_t number, bool started);
  /// Handles one message; returns the outcome if the task has ended.
  [[nodiscard]] std::optional<Outcome> handle_message(Running& running, FromWorker decoded);
  /// The answer for the next case of a question; nothing if the worker died before it started.
  [[nodiscard]] std::optional<Outcome> next_answer(std::uint64_t number, bool& started);
  [[nodiscard]] bool send_task(std::uint64_t number, const Task& task);
  void check_report(const RunReport& report, const Task& task) const;
  void shut_down();

  const WorkerOptions& options_;
  std::mutex kill_mutex_;  ///< keeps pid_ from being reaped, and reused by the system, while kill() uses it
  pid_t pid_ = -1;
  std::atomic<bool> interrupted_ = false;
  bool alive_ = false;
  bool device_lost_ = false;
  std::string death_reason_;
  Channel channel_;
  OutputTail output_;
  std::set<std::uint64_t> known_arenas_;
};

}  // namespace numcheck::worker
