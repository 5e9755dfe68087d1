// The command in a report that runs a case again.
#pragma once

#include <string>

#include "execution_options.hpp"
#include "plans.hpp"

namespace numcheck::app {

/// A word in printable text that a shell reads back unchanged: quoted if it has characters that are special to a shell,
/// and in the form $'...' if it has control characters, direction marks or bytes that are not UTF-8.
[[nodiscard]] std::string shell_word(const std::string& word);

/// The command that runs a case of these plans again; --case is appended to it. Contains no absolute paths.
[[nodiscard]] std::string reproduce_prefix(const PlanOptions& plans, const ExecutionOptions& execution);

}  // namespace numcheck::app
