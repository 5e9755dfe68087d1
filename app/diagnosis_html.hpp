// A diagnosis as a page of its own.
#pragma once

#include <string>

#include "diagnose/search.hpp"
#include "diagnosis_text.hpp"

namespace numcheck::app {

/// The text of the diagnosis, with everything that was excluded, and the maps of the output's errors as declared and, if
/// there is a cause, with it applied. Complete without scripts and without anything from elsewhere.
[[nodiscard]] std::string diagnosis_html(const diagnose::Subject& subject, const diagnose::Diagnosis& diagnosis,
                                         const Surroundings& around);

}  // namespace numcheck::app
