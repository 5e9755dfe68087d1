// Worker processes: one device and one environment each, isolated from crashes, with time limits and shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/device.hpp"
#include "plan/case.hpp"
#include "worker/execution.hpp"

namespace numcheck::core {
class Trace;
}

namespace numcheck::worker {

/// A worker's descriptor of the socket to its coordinator.
inline constexpr int kWorkerSocketFd = 3;

/// Memory that coordinator and workers share (in a memfd arena; plain memory when in-process). Blocks are pooled:
/// releasing one makes its pages reusable without faulting them in again.
class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() = 0;
};

/// Workers cannot write to input blocks, so that a library's stray write cannot make other cases fail.
enum class BlockUse { input, output };

[[nodiscard]] inline BlockUse use_of(const op::Port& port) noexcept {
  return port.role == op::Role::output || port.role == op::Role::amax ? BlockUse::output : BlockUse::input;
}

/// Which worker a case needs. Environment variables are read once per process, and two versions of a library cannot
/// share a process (the linker merges symbols that they mark unique).
struct WorkerKey {
  plan::Environment environment;
  std::string version;  ///< from the backend's name; empty if it has none
  auto operator<=>(const WorkerKey&) const = default;
};

[[nodiscard]] WorkerKey worker_key(const plan::Case& c);

struct WorkerOptions {
  machine::DeviceChoice device;
  int workers_per_environment = 1;
  double timeout_s = 120;  ///< per case, from when the worker starts it
  double startup_timeout_s = 120;
  double answer_timeout_s = 30;  ///< to answer a question or start a case; far more than needed unless the worker hangs
  /// Limits on workers that fail one after another, without a finished case in between. Beyond them the remaining cases
  /// of that environment end as `error`. This one: workers that died before they started a case.
  int max_consecutive_start_failures = 3;
  int max_consecutive_timeouts = 20;   ///< cases that exceeded their time limit
  int max_consecutive_crashes = 1000;  ///< workers that died during a case
  bool in_process = false;             ///< no child processes; rejects cases with an environment
  ExecuteOptions execute;
  std::set<core::Digest> inject_only;    ///< cases that get execute.inject; empty: all
  std::vector<std::string> worker_argv;  ///< arguments for /proc/self/exe: {"exec", "--worker", ...}
  ExecutorFactory factory;               ///< in-process only
  int max_workers = 8;               ///< processes alive at a time, in all environments; each holds a device context
  std::uint64_t max_idle_bytes = 0;  ///< touched shared memory kept for reuse; 0: an eighth of the memory limit
  /// Receives the output of workers and their libraries; called on pool threads, one call at a time. If not set, output
  /// is dropped, except that a worker's last lines are reported when it dies.
  std::function<void(std::string_view)> on_output;
  /// Receives the reason when a worker that died between two cases is replaced (its device was lost, or it was killed);
  /// no case fails because of it. Called on pool threads; must neither throw nor use the pool.
  std::function<void(const std::string&)> on_replaced;
  core::Trace* trace =
      nullptr;  ///< records what the pool's threads do, and all others of a run; null: nothing is recorded
};

/// The options for this case: without `inject` if inject_only excludes it.
[[nodiscard]] ExecuteOptions execute_options(const WorkerOptions& options, const plan::Case& c);

/// A case to run. The ports' bytes lie inside blocks from this pool's allocate().
struct Task {
  const plan::Case* c = nullptr;
  std::vector<HostPort> ports;
  std::vector<std::shared_ptr<SharedBlock>> blocks;  ///< parallel to ports
  RunSink on_run;                                    ///< called on a pool thread, one at a time per task
  std::function<void(const Outcome&)> on_end;        ///< called once, after the last on_run
};

/// Called with the index of a case: `done` if it can run, otherwise how it ends, as for a task.
using AnswerSink = std::function<void(std::size_t index, const Outcome&)>;

/// Asks a worker whether cases can run, before their inputs are generated.
struct Question {
  std::vector<const plan::Case*> cases;  ///< of the same worker key; must live until all are answered
  AnswerSink on_answer;                  ///< called once for each, in order, on a pool thread
};

/// What a worker reports about itself when it is ready.
struct WorkerHello {
  machine::Device device;
  std::vector<std::pair<std::string, std::string>> libraries;
};

/// Implementation of WorkerPool: child processes, or everything in this process (pool.hpp).
class Pool;

/// Spawns workers on demand and runs tasks on them. Tasks of one key (an environment, and the version of a library
/// where cases name one) start in the order of submission, at most workers_per_environment at a time. Keys run
/// concurrently (a device supports several contexts) as far as max_workers allows. "Environment" below means key.
///
/// A task ends as `done`, `unsupported` or `error` if its executor says so (an exception becomes an error with its type
/// and message); as `crashed` if its worker died (with signal or exit status and last output), reported that its device
/// context is lost, or broke the protocol; as `timeout`; or as `error` "interrupted" if it was cancelled or killed.
/// Dead workers are replaced. No case fails because a worker died while it had none.
///
/// Questions are served before the waiting tasks of their environment, and take about 30 us per case. If a worker dies
/// or hangs on a question, only the case in question fails.
///
/// Callbacks run on pool threads. An exception from on_run makes its task an error; one from on_end or on_answer
/// cancels the waiting tasks and is rethrown by wait_idle.
class WorkerPool {
 public:
  explicit WorkerPool(WorkerOptions options);
  /// Kills running workers. Every submitted task has had its on_end when this returns.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Contents are arbitrary. Throws core::EnvironmentError if out of memory. The block may outlive the pool.
  [[nodiscard]] std::shared_ptr<SharedBlock> allocate(std::size_t bytes, BlockUse use = BlockUse::output);

  /// Starts a worker for the key if needed and returns what it reported; throws core::EnvironmentError with the
  /// worker's message if it cannot start. In-process: throws what the factory threw.
  [[nodiscard]] WorkerHello hello(const WorkerKey& key);

  /// Throws core::InternalError if the cases differ in their key; in-process: core::UsageError if the first case has an
  /// environment.
  void ask(Question question);
  /// Throws core::InternalError if a port lies outside its block; in-process: core::UsageError if the case has an
  /// environment. `task.c` and the ports must live until on_end has returned.
  void submit(Task task);
  /// Says that nothing else is likely to come: workers without work end at once, and memory is given back, while the results of the
  /// last ones are still looked at, as it takes a second to give up a device and gigabytes. What comes all the same starts new ones.
  void expect_no_more();
  /// Returns when every submitted task has ended and every question is answered. Must not be called from a callback.
  void wait_idle();
  /// First interrupt: tasks and questions that have not started, and those still to be submitted, end as Outcome::error
  /// "interrupted"; running ones finish. Workers that are starting are killed.
  void cancel_pending();
  /// Second interrupt: kills the workers. In-process: same as cancel_pending.
  void kill_workers();

 private:
  std::unique_ptr<Pool> pool_;
};

/// The worker's main loop (`te-numcheck exec --worker`): reads tasks from `socket_fd`, runs them on the executor, and
/// returns the exit status when the coordinator closes the socket. Exits the process directly if the coordinator dies
/// during a case, or after a case that lost the device context (Outcome::crashed). Throws core::UsageError if
/// `socket_fd` is not a coordinator's socket.
int worker_main(int socket_fd, const machine::DeviceChoice& device, const ExecutorFactory& factory,
                plan::OpLookup lookup);

}  // namespace numcheck::worker
