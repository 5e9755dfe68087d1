// Diagnostics as GitHub Actions annotations: "::error file=plan.json,line=14,col=16::text".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/diagnostic.hpp"

namespace numcheck::app {

/// Of a message without a place, and its notes as further lines. Texts are made printable; what has a meaning in
/// workflow commands is escaped as they want it.
[[nodiscard]] std::string annotation(std::string_view text, const std::vector<std::string>& notes = {});

/// Of a plan's diagnostic; notes become ::notice, warnings ::warning.
[[nodiscard]] std::string annotation(const plan::Diagnostic& diagnostic);

}  // namespace numcheck::app
