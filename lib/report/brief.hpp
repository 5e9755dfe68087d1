// The brief form of a report, for baselines: small enough to commit, with one case per line, so that a changed case is
// a changed line in a diff.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// The report with "brief": true, without tables, and with these members of its cases only: digest, id, status, reason
/// (if any) and runs. Runs keep implementation, error and not_told (if any) and for every output xxh128, the tightest gate
/// as `criteria` (name, measured, limit), and rel_l2 and max_ulp in `metrics`. Members have the same place as in a full
/// report; numbers are rounded to six digits. A brief report stays as it is.
[[nodiscard]] nlohmann::json brief_report(const nlohmann::json& report);

/// Its JSON text, one case per line. Invalid UTF-8 is replaced.
[[nodiscard]] std::string brief_text(const nlohmann::json& brief);

}  // namespace numcheck::report
