// The first failures of a run, shown as they happen: its report comes at the end.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "command.hpp"
#include "run/pipeline.hpp"

namespace numcheck::app {

/// Not thread-safe: finished cases come one at a time.
class FailureLines {
 public:
  explicit FailureLines(Context& context) : context_(context) {}

  /// Writes a line to stderr for each of the first failures: at once if somebody watches a terminal; in a log only once
  /// the run has taken more than 5 s, because the report of a short run is there anyway.
  void add(const run::FinishedCase& finished, std::chrono::steady_clock::time_point start);

 private:
  Context& context_;
  std::vector<std::string> lines_;
  std::size_t shown_ = 0;
};

}  // namespace numcheck::app
