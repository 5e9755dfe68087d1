// Schema of the report's tables, and of the cases of a brief report.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::schema {

/// Of what override_effect returns.
[[nodiscard]] nlohmann::json override_definition();
/// Of what library_changes returns.
[[nodiscard]] nlohmann::json library_changes_definition();
/// Of a case of brief_report.
[[nodiscard]] nlohmann::json brief_case_definition();

}  // namespace numcheck::report::schema
