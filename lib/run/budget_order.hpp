// In which order groups run when not all of them may get their turn.
#pragma once

#include <vector>

#include "plan/case.hpp"
#include "run/group.hpp"

namespace numcheck::run {

/// The cheapest group of every op and mode first, then the second cheapest of each, and so on; groups of equal rank by
/// cost. A group stands where the op and mode that it serves best wants it. Cost: the op's floating-point operations.
[[nodiscard]] std::vector<GroupPlan> cheapest_first(const std::vector<plan::Case>& cases,
                                                    std::vector<GroupPlan> groups);

}  // namespace numcheck::run
