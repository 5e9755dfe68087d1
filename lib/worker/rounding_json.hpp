// Declared roundings in messages between coordinator and worker.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "model/declared_rounding.hpp"

namespace numcheck::worker {

[[nodiscard]] nlohmann::json rounding_to_json(const model::DeclaredRounding& rounding);

/// Throws ProtocolError if a member is missing or has another type.
[[nodiscard]] model::DeclaredRounding rounding_from_json(const nlohmann::json& object);

}  // namespace numcheck::worker
