// Checks before a run that its outputs can be written, because a failure afterwards may cost hours.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run_output.hpp"

namespace numcheck::app {

/// Throws core::UsageError for contradictory options, for two outputs with the same name, and for paths that cannot be
/// written to; it tries them.
void check_output_options(const OutputOptions& options);

/// Throws core::UsageError, naming the option, unless the file can be written; tries it.
void require_writable_file(const char* option, const std::filesystem::path& path);

/// Throws core::UsageError if an output would replace a file that the plan was read from, even through links.
void require_plans_untouched(const OutputOptions& options, const std::vector<std::string>& plan_files);

}  // namespace numcheck::app
