// The amax of a product, with the errors that its largest outputs really have.
#pragma once

#include <optional>

#include "model/error_model.hpp"
#include "tolerance/judge.hpp"
#include "verdict/compared_port.hpp"
#include "verdict/comparison.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Gate G5 amax. V has to hold for every order of summation of any product; where the arithmetic is that of one instruction,
/// the N <= 32 largest |y| replayed with it (fewer of more than 2^17 terms each), unsplit and in 2 to 8 slices, show how far
/// it is off for these operands. With s the root of the mean square of their errors, or a third of the largest, in the
/// schedule where that is largest, and M = max |y|,
///
///   | amax - M | / M  <=  factors + kappa lambda(N) s / M          factors: as gate G5 scale allows
///
/// Nothing if fewer than 8 can be replayed, if half of them have no error (which other orders may have), or if
/// operands repeat.
[[nodiscard]] std::optional<tolerance::Criterion> judge_replayed_amax(const EvaluationContext& context,
                                                                      const worker::RunReport& run,
                                                                      const ComparedPort& compared,
                                                                      const model::ErrorModel& model);

}  // namespace numcheck::verdict
