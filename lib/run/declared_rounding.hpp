// Runs that round parts of a sum to the output's format, and say so.
#pragma once

#include "report/record.hpp"
#include "run/comparison.hpp"
#include "run/execution.hpp"
#include "tolerance/judge.hpp"

namespace numcheck::run {

/// Judges an output that failed under `strict` once more, under what the run says of itself in its details: slices of k
/// added in the output's format (split_k, reduction), or an addition to D in memory (addend). If that explains
/// everything that failed, the result is right as declared but less precise than the mode's accumulation promises:
/// `output` then holds the second judgement, and a warning with the gate that broke. Otherwise nothing changes.
void judge_declared_rounding(const EvaluationContext& context, const RunReport& run, const ComparedPort& compared,
                             const tolerance::RunFacts& facts, const tolerance::ErrorModel& strict,
                             report::OutputResult& output);

}  // namespace numcheck::run
