// What commands that make a report write of it: run and merge.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "command.hpp"
#include "run_output.hpp"

namespace numcheck::app {

/// Writes the views that go to files.
void write_view_files(Attempts& attempts, const ViewOptions& options, const nlohmann::json& report);

/// The report on stdout: the console view, or with --json - the record alone, and then a summary on stderr. `path` is where
/// report.json was written; empty if it was not. The same without the record where JSON Lines have stdout.
void show_report(Context& context, const OutputOptions& options, const nlohmann::json& report, const std::string& path);

}  // namespace numcheck::app
