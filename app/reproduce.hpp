// The command in a report that runs a case again.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "execution_options.hpp"
#include "plans.hpp"

namespace numcheck::app {

/// A word in printable text that a shell reads back unchanged: quoted if it has characters that are special to a shell,
/// and in the form $'...' if it has control characters, direction marks or bytes that are not UTF-8.
[[nodiscard]] std::string shell_word(const std::string& word);

/// The path in a form that no option parser mistakes for an option.
[[nodiscard]] std::string as_argument(const std::string& path);

/// The command that runs a case of these plans again; --case is appended to it.
struct Reproducer {
  std::string recorded;  ///< for the record: without absolute paths; of a file elsewhere, only its name
  std::string typed;     ///< for the console, with the paths as the user typed them
};
[[nodiscard]] Reproducer reproducer(const PlanOptions& plans, const ExecutionOptions& execution);

/// Puts the typed command into the cases of a report that is about to be shown.
void reproduce_as_typed(nlohmann::json& report, const Reproducer& command);

}  // namespace numcheck::app
