// In which order groups run when not all of them may get their turn.
#pragma once

#include <vector>

#include "plan/case.hpp"
#include "prepare/grouping.hpp"

namespace numcheck::run {

/// The cheapest group of every op and mode first, then the second cheapest of each, and so on; groups of equal rank by
/// cost. A group stands where the op and mode that it serves best wants it. Cost: the op's floating-point operations.
[[nodiscard]] std::vector<prepare::GroupPlan> cheapest_first(const std::vector<plan::Case>& cases,
                                                             std::vector<prepare::GroupPlan> groups);

}  // namespace numcheck::run
