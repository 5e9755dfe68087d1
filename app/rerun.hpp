// A case of a report, run again, so that what it leaves can be diagnosed.
#pragma once

#include <string>

#include "diagnose/subject.hpp"
#include "execution_options.hpp"

namespace numcheck::app {

/// Runs the case (identifier, or the start of a digest) of the report, with the report's planted fault if it has one, and
/// on a simulated device if the report is of one and no device is chosen. The subject is the first run that fails, or the
/// last one. Throws core::UsageError if the report has no such case, core::EnvironmentError if no run leaves outputs.
[[nodiscard]] diagnose::Subject rerun(const std::string& report, const std::string& name, ExecutionOptions options);

}  // namespace numcheck::app
