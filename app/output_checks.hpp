// Whether what a run is to write can be written: asked before it runs, because afterwards hours may be lost.
#pragma once

#include <string>
#include <vector>

#include "run_output.hpp"

namespace numcheck::app {

/// Throws core::UsageError for contradictory options, for two outputs of one name, and for paths that cannot be written
/// to, which is tried.
void check_output_options(const OutputOptions& options);

/// Throws core::UsageError if an output would take the place of a file that the plan was read from, whatever links lie
/// between.
void spare_plans(const OutputOptions& options, const std::vector<std::string>& plan_files);

}  // namespace numcheck::app
