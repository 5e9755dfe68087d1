// The case that an identifier describes, without its plan.
#pragma once

#include <string>

#include "plan/case.hpp"

namespace numcheck::app {

/// Of an identifier that has op, parameters, mode and perhaps backend (otherwise auto): inputs are normal, and no variable is
/// set. Throws core::UsageError, or plan::PlanError for values that the op does not take.
[[nodiscard]] plan::Case case_of_identifier(const std::string& identifier);

}  // namespace numcheck::app
