// Reading reports back.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Parses a report and checks what selection needs: every case has an identifier, a digest and a status, and the summary
/// counts them rightly. `name` is for messages. Throws core::IoError if the text is not a report or has another major version.
[[nodiscard]] nlohmann::json parse_report(std::string_view text, const std::string& name);

}  // namespace numcheck::report
