// Rows, columns and tiles of sums of one sign that are too large or too small beside the others.
#pragma once

#include <optional>

#include "model/error_model.hpp"
#include "tolerance/judge.hpp"
#include "verdict/compared_port.hpp"
#include "verdict/comparison.hpp"

namespace numcheck::verdict {

/// Gate "line factor". Sums of one sign lose about the same part of each element, and V, which has that part, hides a wrong
/// factor of a few of them. With r = (got - y) / y, f the mean of r over a row, column or 64 x 64 tile, F the median of f over all
/// of that kind, tau = 1.4826 median |f - F|, and s the standard error of f from the scatter of r:
///
///   |f - F|  <=  min(1.5 |slope_low + slope_coherent|, 2 |F|) + slope_slack + 4 u + 2 lambda(N) sqrt(tau^2 + s^2)
///
/// with u the unit roundoff of the accumulator, which few groups may lose where most lose nothing. The first two allow for tiles that
/// are summed in another order: in twice as many steps or in fewer than most. N is the number of all groups, and results that are
/// rounded alike count as one in s. Elements count if |y| >= 0.9 A and k S2 <= 8 y^2: sums of one sign that no single product
/// dominates.
///
/// Nothing unless half of all elements do, and of kinds of which fewer than 16 have that many; of samples; where something is added,
/// or gelu follows; of a constant operand, and of fewer than 16 terms; of 8-bit outputs, and of 16-bit ones that spread over less than 1.5 steps of their format.
[[nodiscard]] std::optional<tolerance::Criterion> judge_line_factors(const EvaluationContext& context,
                                                                     const ComparedPort& compared,
                                                                     const model::ErrorModel& model,
                                                                     const metric::Statistics& statistics);

}  // namespace numcheck::verdict
