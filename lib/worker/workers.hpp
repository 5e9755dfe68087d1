// Worker processes: one device and one environment each, crash-isolated, with time limits, over shared memory.
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

namespace numcheck::worker {

/// The descriptor on which a worker finds its socket to the coordinator.
inline constexpr int kWorkerSocketFd = 3;

/// A piece of memory that coordinator and workers both see (a memfd arena; plain memory when in-process). Blocks are
/// pooled: releasing the handle makes the pages reusable without touching them again.
class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() = 0;
};

/// What workers may do with a block: those of inputs they cannot write to, so that a stray write of a library cannot
/// make other cases fail.
enum class BlockUse { input, output };

[[nodiscard]] inline BlockUse use_of(const op::Port& port) noexcept {
  return port.role == op::Role::output || port.role == op::Role::amax ? BlockUse::output : BlockUse::input;
}

/// Which worker a case needs: it reads environment variables once, and two versions of a library do not fit into one
/// process (they share what they declare unique).
struct WorkerKey {
  plan::Environment environment;
  std::string version;  ///< of the case's backend, where its name has one
  auto operator<=>(const WorkerKey&) const = default;
};

[[nodiscard]] WorkerKey worker_key(const plan::Case& c);

struct WorkerOptions {
  machine::DeviceChoice device;
  int workers_per_environment = 1;
  double timeout_s = 120;  ///< per case, from the moment the worker has it and is ready
  double startup_timeout_s = 120;
  double answer_timeout_s = 30;  ///< to answer a question, or to begin a case: takes far less unless the worker hangs
  /// Workers that did not begin, without a finished case between; then the rest of that environment is `error`.
  int max_respawns_in_row = 3;
  int max_timeouts_in_row = 20;   ///< the same for cases that overran their time limit
  int max_crashes_in_row = 1000;  ///< the same for workers that crashed in the middle of a case
  bool in_process = false;        ///< no children; refuses cases with an environment
  ExecuteOptions execute;
  std::set<core::Digest> inject_only;    ///< cases that get execute.inject; empty: all
  std::vector<std::string> worker_argv;  ///< arguments for /proc/self/exe: {"exec", "--worker", ...}
  ExecutorFactory factory;               ///< in-process only
  int max_workers = 8;               ///< processes alive at a time, over all environments: each holds a device context
  std::uint64_t max_idle_bytes = 0;  ///< touched shared memory kept for reuse; 0: an eighth of the memory limit
  /// What workers and their libraries print, as it comes; called on pool threads, one call at a time. None: dropped,
  /// but the last lines are told when a worker dies.
  std::function<void(std::string_view)> on_output;
  /// Told why a worker was replaced that ended between two cases, which cost neither: its device was lost, or somebody
  /// killed it. Called on pool threads; must neither throw nor use the pool. None: dropped.
  std::function<void(const std::string&)> on_replaced;
};

/// What holds for this case.
[[nodiscard]] ExecuteOptions execute_options(const WorkerOptions& options, const plan::Case& c);

/// A case on its way to a device. Ports' bytes lie inside blocks of this pool's allocate().
struct Task {
  const plan::Case* c = nullptr;
  std::vector<HostPort> ports;
  std::vector<std::shared_ptr<SharedBlock>> blocks;  ///< parallel to ports
  RunSink on_run;                                    ///< called on a pool thread, one at a time per task
  std::function<void(const Outcome&)> on_end;        ///< called once, after the last on_run
};

/// Called with the index of a case and whether it can run: `done` if it can, else how it ends, as for a task.
using AnswerSink = std::function<void(std::size_t index, const Outcome&)>;

/// Whether cases can run, asked of a worker before their inputs are made.
struct Question {
  std::vector<const plan::Case*> cases;  ///< of one worker key; they must live until all are answered
  AnswerSink on_answer;                  ///< called once for each, in order, on a pool thread
};

/// What the first ready worker of a key said of itself.
struct WorkerHello {
  machine::Device device;
  std::vector<std::pair<std::string, std::string>> libraries;
};

/// What is behind a WorkerPool: children, or everything in this process (pool.hpp).
class Pool;

/// Spawns workers as tasks need them and runs tasks on them. Tasks of one key (an environment, and a version of a
/// library where cases name one) start in the order of submission, at most workers_per_environment at a time; keys run
/// beside each other (a device takes several contexts), as far as max_workers allows. What is said of environments here
/// holds for keys.
///
/// How a task can end: `done`, `unsupported` and `error` as its executor says (an exception is an error with type and
/// text); `crashed` if its worker died (signal or exit status, last words), said that its device context is lost, or
/// sent something that cannot be; `timeout`. A worker that is gone is replaced. One that dies without having a case
/// costs none. `error` "interrupted": cancelled or killed before its end.
///
/// Questions go before the tasks that wait in their environment, and cost about 30 us a case. A worker that dies or
/// hangs on one costs the case that it was asked for only.
///
/// Callbacks run on pool threads. What on_run throws makes its task an error; what on_end or on_answer throws cancels
/// the tasks that wait and is thrown again by wait_idle.
class WorkerPool {
 public:
  explicit WorkerPool(WorkerOptions options);
  /// Kills what still runs; every task that was submitted has had its on_end before this returns.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Contents are arbitrary. Throws core::EnvironmentError if there is no memory. The block may outlive the pool.
  [[nodiscard]] std::shared_ptr<SharedBlock> allocate(std::size_t bytes, BlockUse use = BlockUse::output);

  /// Starts (if needed) the worker of a key and returns what it said; throws core::EnvironmentError with the
  /// worker's own words if it cannot start. In-process: throws what the factory threw.
  [[nodiscard]] WorkerHello hello(const WorkerKey& key);

  /// Throws core::InternalError if the cases differ in their key; in-process: core::UsageError if they have
  /// one.
  void ask(Question question);
  /// Throws core::InternalError if a port lies outside its block; in-process: core::UsageError if the case has an
  /// environment. `task.c` and the ports must live until on_end has returned.
  void submit(Task task);
  /// Returns when every submitted task has ended and every question is answered. Not to be called from a callback.
  void wait_idle();
  /// First interrupt: tasks and questions that have not started, and those still to be submitted, end as Outcome::error
  /// "interrupted"; running ones finish. Workers that are starting are killed.
  void cancel_pending();
  /// Second interrupt: kills the workers. In-process: as cancel_pending.
  void kill_workers();

 private:
  std::unique_ptr<Pool> pool_;
};

/// The worker's main loop (`te-numcheck exec --worker`): reads tasks from `socket_fd`, runs them on the executor,
/// returns the exit status when the coordinator closes the socket. If the coordinator dies in the middle of a case, or
/// after a case that lost the device context (Outcome::crashed), it ends the process. Throws core::UsageError if
/// `socket_fd` is no socket of a coordinator.
int worker_main(int socket_fd, const machine::DeviceChoice& device, const ExecutorFactory& factory,
                plan::OpLookup lookup);

}  // namespace numcheck::worker
