// Parts of a case's JSON, as case_to_json(c) and its dump() have them.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "op/value.hpp"
#include "plan/case.hpp"

namespace numcheck::plan {

/// Numbers that are not finite are strings.
[[nodiscard]] nlohmann::json value_to_json(const op::Value& value);
/// Appends that as text.
void append_json(const op::Value& value, std::string& text);

/// The object's beginning, up to "mode": everything but mode, op, parameters and seed.
[[nodiscard]] std::string settings_text(const Case& c);

}  // namespace numcheck::plan
