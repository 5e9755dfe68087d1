// Parts of a case's JSON text, as case_to_json(c).dump() has them.
#pragma once

#include <string>

#include "op/value.hpp"
#include "plan/case.hpp"

namespace numcheck::plan {

void append_json(const op::Value& value, std::string& text);

/// The object's beginning, up to "mode": everything but mode, op, parameters and seed.
[[nodiscard]] std::string settings_text(const Case& c);

}  // namespace numcheck::plan
