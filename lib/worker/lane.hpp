// The queues of one worker key and what is known about its workers. Guarded by the pool's mutex.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "plan/case.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {

/// Counts of consecutive worker failures. A crash costs only its case and shows that workers do start, so many are
/// allowed. A timeout costs minutes. A worker that dies before it starts will probably do so again.
struct ConsecutiveFailures {
  int crashes = 0;   ///< died while working
  int timeouts = 0;  ///< exceeded a time limit
  int deaths = 0;    ///< died before they started work
};

struct Lane {
  WorkerKey key;
  std::deque<Question> questions;  ///< served before the tasks
  std::deque<Task> queue;
  std::optional<WorkerHello> hello;  ///< from the first ready worker
  bool hello_wanted = false;
  bool starting_for_hello = false;
  ConsecutiveFailures case_failures;      ///< since the last finished case
  ConsecutiveFailures question_failures;  ///< since the last answer
  std::string last_failure;
  std::string give_up_reason;  ///< why no more workers are started; empty: not given up
  bool has_no_thread = false;  ///< thread creation failed: everything ends with `give_up_reason`

  [[nodiscard]] bool has_work() const { return !questions.empty() || !queue.empty(); }
  [[nodiscard]] bool needs_hello() const {
    return hello_wanted && !hello && give_up_reason.empty() && !starting_for_hello;
  }

  void count_case_failure(const Outcome& end, const WorkerOptions& options) {
    count(case_failures, "finishing a case", end, options);
  }
  void count_question_failure(const Outcome& end, const WorkerOptions& options) {
    count(question_failures, "answering a question", end, options);
  }

 private:
  void count(ConsecutiveFailures& ends, std::string_view without, const Outcome& end, const WorkerOptions& options) {
    int* consecutive = &ends.deaths;
    int limit = options.max_consecutive_start_failures;
    if (end.kind == Outcome::Kind::crashed) {
      consecutive = &ends.crashes;
      limit = options.max_consecutive_crashes;
    } else if (end.kind == Outcome::Kind::timeout) {
      consecutive = &ends.timeouts;
      limit = options.max_consecutive_timeouts;
    }
    last_failure = end.reason;
    if (++*consecutive > limit) {
      give_up_reason = fmt::format("giving up: {} workers in a row died without {}; the last one: {}", *consecutive,
                                   without, end.reason);
    }
  }
};

/// "NVIDIA H200 GPU-1, driver 580.65, cublaslt 13.1.0": equal for workers that compute the same numbers.
[[nodiscard]] inline std::string identity_text(const WorkerHello& hello) {
  std::string text = fmt::format("{} {}, driver {}", hello.device.name, hello.device.uuid, hello.device.driver);
  for (const auto& [name, version] : hello.libraries) {
    text += fmt::format(", {} {}", name, version);
  }
  return text;
}

}  // namespace numcheck::worker
