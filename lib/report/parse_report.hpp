// Reading reports back.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Parses a report and checks what selection needs: every case has an identifier, a digest and a status, what is there
/// has the types of the schema, and the summary counts the cases rightly. `name` is for messages. Throws core::IoError
/// if the text is not a report or has another major version.
[[nodiscard]] nlohmann::json parse_report(std::string_view text, const std::string& name);

/// What a report lacks, from the exception of the JSON library, without that library's name and number for it.
[[nodiscard]] std::string missing_text(const std::exception& error);

}  // namespace numcheck::report
