// The command that a report gives to repeat a case.
#pragma once

#include <string>

#include "execution_options.hpp"
#include "plans.hpp"

namespace numcheck::app {

/// The command that runs a case of these plans again; --case is added to it. Names no folder by an absolute path.
[[nodiscard]] std::string reproduce_prefix(const PlanOptions& plans, const ExecutionOptions& execution);

}  // namespace numcheck::app
