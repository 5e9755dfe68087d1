// The command that a report gives to repeat a case.
#pragma once

#include <string>

#include "execution_options.hpp"
#include "plans.hpp"

namespace numcheck::app {

/// A word as a shell reads it back, in printable text: quoted where a shell would see more in it than letters, and in
/// the form $'...' where it has control characters, marks of direction or bytes that are no UTF-8.
[[nodiscard]] std::string shell_word(const std::string& word);

/// The command that runs a case of these plans again; --case is added to it. Names no folder by an absolute path.
[[nodiscard]] std::string reproduce_prefix(const PlanOptions& plans, const ExecutionOptions& execution);

}  // namespace numcheck::app
