// A case's result as JSON. Every view is a function of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "verdict/record.hpp"

namespace numcheck::report {

/// The case's object in report.json (and its line in results.jsonl).
[[nodiscard]] nlohmann::json to_json(const verdict::CaseResult& result);

}  // namespace numcheck::report
