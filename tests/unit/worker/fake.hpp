// A device that misbehaves on request, for the tests of the worker pool: y = x + index of the run, unless the case's
// parameter `act` says otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "worker/workers.hpp"

namespace numcheck::worker::fake {

[[nodiscard]] const op::Op& fake_op();
[[nodiscard]] const op::Op* lookup(std::string_view name);
[[nodiscard]] std::unique_ptr<Executor> make_executor(const machine::DeviceChoice& choice);

/// A case of n elements. `act`: see fake.cpp.
[[nodiscard]] plan::Case make_case(const std::string& act, std::int64_t n = 16, plan::Environment environment = {});

/// Options for workers that are this executable; `extra` are further arguments ("--start=hang").
[[nodiscard]] WorkerOptions worker_options(std::vector<std::string> extra = {});

/// Entry of the worker process: arguments after "exec --worker".
int serve(const std::vector<std::string>& arguments);

/// A task for `c` with a block of the pool for each of the case's ports, which are `ports`; both must outlive it.
[[nodiscard]] Task make_task(WorkerPool& pool, const plan::Case& c, const std::vector<op::Port>& ports);

/// The outcome of one task.
struct Done {
  plan::Case c;
  std::vector<op::Port> ports;
  std::vector<RunReport> runs;
  std::vector<std::vector<float>> outputs;  ///< of each run, as they were during on_run
  Outcome outcome;
  int ends = 0;
};

/// Submits cases to a pool and collects what happens to them.
class Collector {
 public:
  explicit Collector(WorkerPool& pool) : pool_(pool) {}
  /// The returned object is complete after WorkerPool::wait_idle. x[i] = i + 1.
  Done& submit(plan::Case c);

 private:
  WorkerPool& pool_;
  std::vector<std::unique_ptr<Done>> tasks_;
};

/// Runs one case in a pool of its own.
[[nodiscard]] Done run_alone(WorkerOptions options, plan::Case c);

/// The value of a detail of a run, or "".
[[nodiscard]] std::string detail(const RunReport& report, std::string_view name);

using Clock = std::chrono::steady_clock;
[[nodiscard]] double seconds_since(Clock::time_point start);

[[nodiscard]] bool contains(std::string_view text, std::string_view part);

/// True once no process (except a zombie) has that ID; waits up to `seconds`.
[[nodiscard]] bool is_gone(int pid, double seconds);

}  // namespace numcheck::worker::fake
