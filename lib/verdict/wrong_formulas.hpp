// What the op would yield with mistakes in its formula, for the certificate.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "metric/compare.hpp"
#include "op/op.hpp"
#include "tolerance/vacuity.hpp"

namespace numcheck::verdict {

struct EvaluationContext;

/// By output.
using WrongFormulas = std::map<std::string, std::vector<tolerance::WrongFormula>, std::less<>>;

/// Of an output; nothing where computing them would take long. Computed once per rounding of the inputs, of all outputs.
/// Elements that are not certain to be as the reference says are as in `input`.
[[nodiscard]] std::vector<tolerance::WrongFormula> wrong_formulas(const EvaluationContext& context,
                                                                  const op::Port& port,
                                                                  const metric::CompareInput& input);

/// What the op's own gates say of mistakes that are planted in what the run delivered, where the device chooses all outputs
/// itself (op::OutputValues::unpredictable): by output, the one whose gate rejects the mistake, or the first that has it.
[[nodiscard]] std::map<std::string, std::vector<tolerance::Fake>, std::less<>> judge_in_choices(
    const EvaluationContext& context);

}  // namespace numcheck::verdict
