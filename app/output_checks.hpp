// Whether a run's outputs can be written: checked before it runs, because afterwards hours may be lost.
#pragma once

#include <string>
#include <vector>

#include "run_output.hpp"

namespace numcheck::app {

/// Throws core::UsageError for contradictory options, for two outputs with the same name, and for paths that cannot be
/// written to (by trying).
void check_output_options(const OutputOptions& options);

/// Throws core::UsageError if an output would replace a file that the plan was read from, whatever links lie between.
void spare_plans(const OutputOptions& options, const std::vector<std::string>& plan_files);

}  // namespace numcheck::app
