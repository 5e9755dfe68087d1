// Which of several readings of the same tensors their numbers fit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "diagnose/fit.hpp"
#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

/// Shapes do not tell whether a square operand is stored transposed. Of the switches that nobody chose, turns those without
/// which the given output has nothing to do with the inputs, if it has with them. Returns what was turned: "trans_b = true".
[[nodiscard]] std::vector<std::string> settle_orientation(Subject& subject, const ChosenParams& chosen);

/// Nor do they tell what becomes of a tensor that several choices of a parameter read alike: of a bias, whether it is added
/// before or after scaling. Of such parameters that nobody chose, takes what the given output is much nearer to. Returns
/// what was taken, by the name of the parameter.
[[nodiscard]] std::map<std::string, std::string> settle_choices(Subject& subject, const ChosenParams& chosen);

}  // namespace numcheck::diagnose
