// Products replayed on a few outputs, bit for bit, with the arithmetic of the device that ran.
#pragma once

#include <optional>

#include "model/error_model.hpp"
#include "tolerance/judge.hpp"
#include "verdict/compared_port.hpp"
#include "verdict/comparison.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Replays up to 1024 outputs of a product (fewer of more than 32768 terms each), spread over rows and columns, unsplit and in
/// 2 to 8 slices, until one of these identifies the arithmetic: see tolerance::judge_scale. Nothing if none does, if too few
/// errors show behind the output's rounding, or if the product is followed by more than a factor.
[[nodiscard]] std::optional<tolerance::Criterion> judge_replayed_scale(const EvaluationContext& context,
                                                                       const worker::RunReport& run,
                                                                       const ComparedPort& compared,
                                                                       const model::ErrorModel& model);

}  // namespace numcheck::verdict
