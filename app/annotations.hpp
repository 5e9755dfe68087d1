// Diagnostics as GitHub Actions annotations: "::error file=plan.json,line=14,col=16::text".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/diagnostic.hpp"

namespace numcheck::app {

/// For a message without a position, with its notes as further lines. Texts are made printable; characters that have a
/// meaning in workflow commands are escaped.
[[nodiscard]] std::string annotation(std::string_view text, const std::vector<std::string>& notes = {});

/// For a plan's diagnostic; notes become ::notice, warnings ::warning.
[[nodiscard]] std::string annotation(const plan::Diagnostic& diagnostic);

/// The first failed cases of a report, one line each. GitHub shows ten annotations of a step: the last one counts the
/// failures that are left out.
[[nodiscard]] std::string failure_annotations(const nlohmann::json& report);

}  // namespace numcheck::app
