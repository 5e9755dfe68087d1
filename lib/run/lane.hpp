// The cases of one environment and what is known of its workers. Guarded by the pool's mutex.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "plan/case.hpp"
#include "run/workers.hpp"

namespace numcheck::run {

struct Lane {
  plan::Environment environment;
  std::deque<Task> queue;
  std::optional<WorkerHello> hello;  ///< of the first worker that was ready
  bool hello_wanted = false;
  bool starting_for_hello = false;
  int deaths_in_row = 0;
  std::string given_up;  ///< why no further worker is started; empty: go on

  [[nodiscard]] bool needs_hello() const { return hello_wanted && !hello && given_up.empty() && !starting_for_hello; }

  void count_death(const std::string& reason, int max_respawns_in_row) {
    if (++deaths_in_row > max_respawns_in_row) {
      given_up = fmt::format("no more workers: {} in a row died without finishing a case; the last: {}", deaths_in_row,
                             reason);
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
