// Checks before a run that its outputs can be written, because a failure afterwards may cost hours.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "run_output.hpp"

namespace numcheck::app {

/// Throws core::UsageError for contradictory options, for two outputs with the same name, and for paths that cannot be
/// written to; it tries them.
void check_output_options(const OutputOptions& options);

/// A file that a command writes from reports, and the option that names it.
struct RequestedFile {
  const char* option;
  std::string path;  ///< "-": stdout
};

/// Throws core::UsageError unless all files can be written, which is tried, differ from each other, and from the reports
/// that the command reads; only one may be stdout.
void check_requested_files(const std::vector<RequestedFile>& files, const std::vector<std::string>& reports);

/// Throws core::UsageError if an output would replace one of the files that were read, even through links; `why` they
/// matter: "which the plan is read from".
void require_sources_untouched(const OutputOptions& options, const std::vector<std::string>& files,
                               std::string_view why);

}  // namespace numcheck::app
