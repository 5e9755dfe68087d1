// Mistakes in formulas that the inputs of cases do not show, in words.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

/// "cannot tell epsilon from ten times epsilon, gamma from gamma + 1"; empty if the run tells all that was tried.
[[nodiscard]] std::string not_told_text(const nlohmann::json& run);

/// The same of all runs of a case that passes, each mistake once; empty for other cases, which prove nothing of the rest.
[[nodiscard]] std::string not_told_by(const nlohmann::json& record);

/// "3 cases" and "cannot tell epsilon from ten times epsilon": how many of the cases that pass do not show a mistake.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> not_told_counts(const nlohmann::json& report);

/// The same as lines.
[[nodiscard]] std::string not_told_lines(const nlohmann::json& report);

}  // namespace numcheck::report::views
