// All of an output of which only a sample is expected.
#pragma once

#include <vector>

#include "metric/compare.hpp"
#include "model/error_model.hpp"
#include "tolerance/judge.hpp"
#include "verdict/compared_port.hpp"
#include "verdict/comparison.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Looks at every element of a main output whose reference is a sample:
///
///   - "G0 unwritten" and "G0 pattern" of `criteria` become those of the whole output. Of elements that are NaN or infinite,
///     up to 64 are computed and judged like the sample's.
///   - "G2 block rms" and "G2 block max" are added if the reference can project (op::Reference::project): errors of blocks of
///     256 columns, e = sum r_j (d_j - y_j) with random signs r, have the mean square sum V_j + ulp_j^2 / 12, whatever the
///     errors are, and are judged as those of elements; an rms only of enough blocks whose errors are independent. Blocks
///     that are not finite, or have FP8's largest number, are left out.
///   - "amax of all" is added if the case has an amax of the output: rounded like the output, it must be its largest number;
///     and it is judged by the references of the elements that are stored as that or the number below (of more than 4096, it
///     must not be less than some have).
void judge_whole_output(const EvaluationContext& context, const worker::RunReport& run, const ComparedPort& compared,
                        const model::ErrorModel& model, const metric::Statistics& sample,
                        std::vector<tolerance::Criterion>& criteria);

}  // namespace numcheck::verdict
