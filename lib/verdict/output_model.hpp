// The error model that an output is judged by.
#pragma once

#include "model/error_model.hpp"
#include "verdict/comparison.hpp"

namespace numcheck::verdict {

/// The model of one output of a case with operands of that class. `rounding`: what attention may round early; nothing is
/// what the mode promises.
[[nodiscard]] model::ErrorModel output_model(const EvaluationContext& context, const op::Port& port,
                                             model::PrecisionClass expected,
                                             const model::AttentionRounding& rounding = {});

}  // namespace numcheck::verdict
