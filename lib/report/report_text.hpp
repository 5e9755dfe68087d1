// The text of a report, whole or piece by piece.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace numcheck::report {

/// Its JSON text. Invalid UTF-8 is replaced.
[[nodiscard]] std::string report_text(const nlohmann::json& report);

enum class Characters : std::uint8_t { unicode, ascii };

/// One record by itself.
[[nodiscard]] std::string record_text(const nlohmann::json& record, Characters characters);

/// The record_text of the case with that index; called from several threads.
using RecordTextAt = std::function<std::string(std::size_t)>;

/// The same text, with cases that are made one at a time: only a few of them are in memory, and of the report's own
/// only the number counts. `take` gets the pieces in order.
void write_report_text(const nlohmann::json& report, const RecordTextAt& text_at, Characters characters,
                       const std::function<void(std::string_view)>& take);

}  // namespace numcheck::report
