// The pass of a case that left an output, as a case of its own.
#pragma once

#include <optional>
#include <string_view>

#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

/// Of a case that runs several ops one after another (op::Op::passes), the one that left the output: what earlier passes left
/// for it are given inputs, so that hypotheses are about its own arithmetic. Nothing if the case has one pass, or if something
/// that the pass reads is not given.
[[nodiscard]] std::optional<Subject> one_pass(const Subject& subject, std::string_view port);

}  // namespace numcheck::diagnose
