// The order in which groups run when there may not be time for all of them.
#pragma once

#include <vector>

#include "plan/case.hpp"
#include "prepare/grouping.hpp"

namespace numcheck::run {

/// First the cheapest group of every op and mode, then the second cheapest of each, and so on; groups of equal rank are
/// sorted by cost. A group with several ops or modes takes its best rank. Cost: the op's floating-point operations.
[[nodiscard]] std::vector<prepare::GroupPlan> cheapest_first(const std::vector<plan::Case>& cases,
                                                             std::vector<prepare::GroupPlan> groups);

}  // namespace numcheck::run
