// The cases of one key and what is known of its workers. Guarded by the pool's mutex.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "plan/case.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {

/// Workers that ended one after the other. A crash costs its case only and shows that workers do start, so many are
/// allowed; one that hangs until its time is up costs minutes; one that does not begin will not begin the next time.
struct EndsInRow {
  int crashes = 0;   ///< in the middle of its work
  int timeouts = 0;  ///< overran a time limit
  int deaths = 0;    ///< did not begin
};

struct Lane {
  WorkerKey key;
  std::deque<Question> questions;  ///< go before the tasks
  std::deque<Task> queue;
  std::optional<WorkerHello> hello;  ///< of the first worker that was ready
  bool hello_wanted = false;
  bool starting_for_hello = false;
  EndsInRow case_ends;      ///< without a finished case between
  EndsInRow question_ends;  ///< without an answer between
  std::string last_death;
  std::string given_up;     ///< why no further worker is started; empty: go on
  bool threadless = false;  ///< the system gave no thread to serve it: what comes is refused, with `given_up`

  [[nodiscard]] bool has_work() const { return !questions.empty() || !queue.empty(); }
  [[nodiscard]] bool needs_hello() const { return hello_wanted && !hello && given_up.empty() && !starting_for_hello; }

  void count_case_end(const Outcome& end, const WorkerOptions& options) {
    count(case_ends, "finishing a case", end, options);
  }
  void count_question_end(const Outcome& end, const WorkerOptions& options) {
    count(question_ends, "answering a question", end, options);
  }

 private:
  void count(EndsInRow& ends, std::string_view without, const Outcome& end, const WorkerOptions& options) {
    int* in_row = &ends.deaths;
    int limit = options.max_respawns_in_row;
    if (end.kind == Outcome::Kind::crashed) {
      in_row = &ends.crashes;
      limit = options.max_crashes_in_row;
    } else if (end.kind == Outcome::Kind::timeout) {
      in_row = &ends.timeouts;
      limit = options.max_timeouts_in_row;
    }
    last_death = end.reason;
    if (++*in_row > limit) {
      given_up =
          fmt::format("no more workers: {} in a row died without {}; the last: {}", *in_row, without, end.reason);
    }
  }
};

/// "NVIDIA H200 GPU-1, driver 580.65, cublaslt 13.1.0": equal for workers that give the same numbers.
[[nodiscard]] inline std::string identity_text(const WorkerHello& hello) {
  std::string text = fmt::format("{} {}, driver {}", hello.device.name, hello.device.uuid, hello.device.driver);
  for (const auto& [name, version] : hello.libraries) {
    text += fmt::format(", {} {}", name, version);
  }
  return text;
}

}  // namespace numcheck::worker
