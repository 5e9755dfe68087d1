// `te-numcheck doctor --json`: the findings for programs, and their schema.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "doctor_facts.hpp"

namespace numcheck::app {

/// One object. It has absolute paths, because it is about this machine and not meant to leave it as reports do.
[[nodiscard]] nlohmann::json doctor_json(const DoctorFacts& facts, const std::vector<Finding>& findings);

/// JSON Schema (draft-07) of doctor_json().
[[nodiscard]] nlohmann::json doctor_schema();

}  // namespace numcheck::app
