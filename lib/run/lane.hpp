// The cases of one key and what is known of its workers. Guarded by the pool's mutex.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "plan/case.hpp"
#include "run/workers.hpp"

namespace numcheck::run {

struct Lane {
  WorkerKey key;
  std::deque<Question> questions;  ///< go before the tasks
  std::deque<Task> queue;
  std::optional<WorkerHello> hello;  ///< of the first worker that was ready
  bool hello_wanted = false;
  bool starting_for_hello = false;
  int deaths_in_row = 0;           ///< without a finished case between
  int question_deaths_in_row = 0;  ///< without an answer between
  std::string last_death;
  std::string given_up;  ///< why no further worker is started; empty: go on

  [[nodiscard]] bool has_work() const { return !questions.empty() || !queue.empty(); }
  [[nodiscard]] bool needs_hello() const { return hello_wanted && !hello && given_up.empty() && !starting_for_hello; }

  void count_death(const std::string& reason, int max_respawns_in_row) {
    give_up_beyond(max_respawns_in_row, ++deaths_in_row, "finishing a case", reason);
  }
  void count_question_death(const std::string& reason, int max_respawns_in_row) {
    give_up_beyond(max_respawns_in_row, ++question_deaths_in_row, "answering a question", reason);
  }

 private:
  void give_up_beyond(int limit, int deaths, std::string_view without, const std::string& reason) {
    last_death = reason;
    if (deaths > limit) {
      given_up = fmt::format("no more workers: {} in a row died without {}; the last: {}", deaths, without, reason);
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

}  // namespace numcheck::run
