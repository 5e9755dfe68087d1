// Tensors of files as inputs and outputs of a case: decoded, and rounded to the formats that the case has.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "diagnose/fit.hpp"
#include "diagnose/gather.hpp"
#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

/// Gives the subject, whose case is known, its inputs and outputs. Says what was taken for granted or changed. Throws
/// core::UsageError if an input is missing, no output is there, or an output has numbers that its format does not hold.
[[nodiscard]] std::vector<std::string> take_tensors(Subject& subject, std::span<const NamedTensor> tensors,
                                                    const GatherRequest& request);

}  // namespace numcheck::diagnose
