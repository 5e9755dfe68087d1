// What a simulated device makes of the inputs if it computes in a known wrong way.
#pragma once

#include "diagnose/subject.hpp"
#include "prepare/group.hpp"

namespace numcheck::diagnose {

/// Replaces the values by those of the trial's fault, as the device has them before it rounds them to the format of the
/// output, and widens bounds and deviations: the device that delivered has errors of its own. Throws core::Error if the case is
/// not simulated, or is too large for it.
void simulate(const Subject& subject, const Trial& trial, const prepare::PreparedCase& prepared, op::Values& values,
              op::Yardsticks& yardsticks);

/// Whether a case is small enough: a simulated product takes a thousand times as long as a real one.
[[nodiscard]] bool can_simulate(const Subject& subject);

}  // namespace numcheck::diagnose
