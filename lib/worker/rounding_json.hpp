// Declared and observed roundings in messages between coordinator and worker.
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "model/declared_rounding.hpp"
#include "model/error_model.hpp"

namespace numcheck::worker {

[[nodiscard]] nlohmann::json rounding_to_json(const model::DeclaredRounding& rounding);

/// Throws ProtocolError if a member is missing or has another type.
[[nodiscard]] model::DeclaredRounding rounding_from_json(const nlohmann::json& object);

/// Null if nothing is known.
[[nodiscard]] nlohmann::json conversion_to_json(const std::optional<model::Conversion>& conversion);

/// Throws ProtocolError if it is neither null nor a format and a way to round.
[[nodiscard]] std::optional<model::Conversion> conversion_from_json(const nlohmann::json& object);

}  // namespace numcheck::worker
