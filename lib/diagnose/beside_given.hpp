// Outputs that nobody gave, beside those that were: an op's findings read all of them.
#pragma once

#include <string_view>

#include "diagnose/subject.hpp"
#include "op/reference.hpp"
#include "prepare/group.hpp"

namespace numcheck::diagnose {

/// The stored bytes of an output, of the trial or as given; null if nobody gave it.
[[nodiscard]] SharedBytes given_bytes(const Subject& subject, const Trial& trial, std::string_view port);

/// Puts what is expected of them in the place of outputs that nobody gave, as those that were given, which are in place, decide
/// between several right results (which of tied experts are chosen). The verdict of what is filled in is to be dropped.
void fill_in_others(const Subject& subject, const Trial& trial, prepare::PreparedGroup& made, const op::Values& values);

}  // namespace numcheck::diagnose
