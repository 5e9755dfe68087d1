// Mistakes in formulas that the inputs of cases do not show, in words.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

/// "cannot tell epsilon from ten times epsilon, gamma from gamma + 1"; empty if the run tells all that was tried.
[[nodiscard]] std::string not_told_text(const nlohmann::json& run);

/// "    3 cases cannot tell epsilon from ten times epsilon", a line each, of the cases that pass.
[[nodiscard]] std::string not_told_lines(const nlohmann::json& report);

}  // namespace numcheck::report::views
