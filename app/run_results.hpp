// Writes what a run has found: files, then the terminal.
#pragma once

#include <functional>

#include <nlohmann/json_fwd.hpp>

#include "command.hpp"
#include "reproduce.hpp"
#include "run_output.hpp"

namespace numcheck::app {

struct ResultOptions {
  const OutputOptions& output;
  const Reproducer& command;           ///< its recorded form is in the report
  std::function<void()> finish_lines;  ///< writes the last of the JSON Lines
};

/// Files first, then stdout, which may be a closed pipe. If that leaves no copy of the report, because a disk is full, it
/// goes to the default folder. Throws the first core::IoError after everything was tried. The report is used up.
void write_results(Context& context, const ResultOptions& options, RunFolder& folder, nlohmann::json& report);

}  // namespace numcheck::app
