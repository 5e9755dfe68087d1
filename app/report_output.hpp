// What commands that make a report write of it: run and merge.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "command.hpp"
#include "core/file.hpp"
#include "report/report_text.hpp"
#include "run_output.hpp"

namespace numcheck::app {

/// Passes on the text of the full record piece by piece.
using ProduceRecord = std::function<void(report::Characters, const core::TakeText&)>;

/// That of a report that is whole in memory, and outlives it.
[[nodiscard]] ProduceRecord record_of(const nlohmann::json& report);

/// Writes the views that go to files; `record` is the one that is the record itself.
void write_view_files(Attempts& attempts, const ViewOptions& options, const nlohmann::json& report,
                      const ProduceRecord& record);

/// The report on stdout: the console view, or with --json - the record alone, and then a summary on stderr. `path` is where
/// report.json was written; empty if it was not. The same without the record where JSON Lines have stdout.
void show_report(Context& context, const OutputOptions& options, const nlohmann::json& report, const std::string& path,
                 const ProduceRecord& record);

}  // namespace numcheck::app
