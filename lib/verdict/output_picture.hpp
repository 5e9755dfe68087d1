// Pictures of outputs: where they are wrong, and what is there instead.
#pragma once

#include "verdict/comparison.hpp"
#include "verdict/record.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Adds OutputResult::picture to the outputs that fail or warn, or to all of them if the context says so. Their bounds are
/// those of the class that was expected, without roundings that the backend declares. Needs the run's tensors and its
/// status. An output of which nothing in particular is expected has no picture.
void add_pictures(const EvaluationContext& context, const worker::RunReport& run, model::PrecisionClass expected,
                  RunResult& result);

}  // namespace numcheck::verdict
