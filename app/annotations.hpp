// Diagnostics as GitHub Actions annotations: "::error file=plan.json,line=14,col=16::text".
#pragma once

#include <string>
#include <string_view>

#include "plan/diagnostic.hpp"

namespace numcheck::app {

/// Of a message without a place. Line ends are escaped as the workflow commands want it.
[[nodiscard]] std::string annotation(std::string_view text);

/// Of a plan's diagnostic; notes become ::notice, warnings ::warning.
[[nodiscard]] std::string annotation(const plan::Diagnostic& diagnostic);

}  // namespace numcheck::app
