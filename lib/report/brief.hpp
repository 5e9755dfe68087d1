// The brief form of a report: what a baseline needs, small enough for a repository and with one case a line, so that a
// change of one case is a change of one line.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// The report with "brief": true, without tables, and with these members of its cases only: digest, id, status, reason
/// (where there is one) and runs, of which implementation, error (where there is one) and of every output xxh128, the
/// tightest gate as `criteria` (name, measured, limit), and of `metrics` rel_l2 and max_ulp. What is there has the
/// place that it has in a whole report; numbers are rounded to six digits.
[[nodiscard]] nlohmann::json brief_report(const nlohmann::json& report);

/// Its JSON text, one case a line. Bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string brief_text(const nlohmann::json& brief);

}  // namespace numcheck::report
