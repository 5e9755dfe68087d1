// Schemas of the report's tables, and of the cases in a brief report.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::schema {

/// Of the result of override_effect.
[[nodiscard]] nlohmann::json override_definition();
/// Of the result of causes.
[[nodiscard]] nlohmann::json causes_definition();
/// Of the result of precision_map.
[[nodiscard]] nlohmann::json precision_map_definition();
/// Of the result of library_changes.
[[nodiscard]] nlohmann::json library_changes_definition();
/// Of a case in brief_report.
/// Members of full and brief cases that few of them have.
[[nodiscard]] nlohmann::json known_issue_properties();
[[nodiscard]] nlohmann::json brief_case_definition();

}  // namespace numcheck::report::schema
