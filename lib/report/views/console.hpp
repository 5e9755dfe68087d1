// The console view: a pure function of the record.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

struct ConsoleOptions {
  bool colour = false;
  std::size_t width = 100;  ///< 0: unlimited
  int verbosity = 0;  ///< -1 summary line; 0 failures, table per op x mode x backend, summary; 1 every case; 2 also
                      ///< metrics and stage times
  std::string report_path;  ///< where report.json went; empty if nowhere
};

/// The whole view. A simulated device is named as such in the first lines and in the summary line. Whatever the report
/// holds, the view's line ends and colours are its own (core::printable).
[[nodiscard]] std::string render_console(const nlohmann::json& report, const ConsoleOptions& options);

/// Parts of the view, in their order, of a report whose texts are printable.
[[nodiscard]] std::string render_header(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_cases(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_groups(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_failures(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_notes(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_override(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_libraries(const nlohmann::json& report, const ConsoleOptions& options);
[[nodiscard]] std::string render_summary(const nlohmann::json& report, const ConsoleOptions& options);

}  // namespace numcheck::report::views
