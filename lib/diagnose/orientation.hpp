// Which of two readings of a square matrix its numbers fit.
#pragma once

#include <string>
#include <vector>

#include "diagnose/fit.hpp"
#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

/// Shapes do not tell whether a square operand is stored transposed. Of the switches that nobody chose, turns those without
/// which the given output has nothing to do with the inputs, if it has with them. Returns what was turned: "trans_b = true".
[[nodiscard]] std::vector<std::string> settle_orientation(Subject& subject, const ChosenParams& chosen);

}  // namespace numcheck::diagnose
