// The comparison of two reports as text.
#pragma once

#include <string>

#include "report/comparison.hpp"
#include "report/views/console.hpp"

namespace numcheck::report::views {

/// The sentence, what else differs, regressions with their reasons, and a table of the other changes: 20 of them unless the
/// verbosity is more than 0. With verbosity -1 the sentence alone.
[[nodiscard]] std::string render_comparison(const Comparison& comparison, const ConsoleOptions& options);

/// Markdown for a pull request or a step summary: regressions first, at most 1 MiB.
[[nodiscard]] std::string comparison_markdown(const Comparison& comparison);

}  // namespace numcheck::report::views
