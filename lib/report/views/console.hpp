// The console view: a pure function of the record.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

struct ConsoleOptions {
  bool colour = false;
  std::size_t width = 100;  ///< 0: unlimited
  int verbosity = 0;  ///< -1: summary line; 0: failures, table per op x mode x backend, summary; 1: every case; 2: also
                      ///< metrics and stage times
  std::string report_path;  ///< where report.json was written; empty if it was not
  std::size_t slowest = 0;  ///< cases to list by time; 0: five with metrics, otherwise none
};

/// The complete view; of a brief report, what it has. The first lines and the summary line say so if the device is simulated. Text from the report
/// cannot add line breaks or escape sequences (core::printable).
[[nodiscard]] std::string render_console(const nlohmann::json& report, const ConsoleOptions& options);

/// Parts of the view, in order. The report's strings must be printable.
[[nodiscard]] std::string render_header(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_cases(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_groups(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_failures(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_contract(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_warnings(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_slowest(const nlohmann::json& report, const ConsoleOptions& options);
/// The cases that did not fail because the planted fault changed nothing in them.
[[nodiscard]] std::string render_unseen_fault(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_tolerances(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_notes(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_override(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_causes(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_baseline(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_known_issues(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_precision(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_libraries(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_summary(const nlohmann::json& report, const ConsoleOptions& options);

}  // namespace numcheck::report::views
