// Pictures of an output: the maps of its errors, and the elements around the worst one.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

/// Both maps of an `error_map` (picture_members.hpp) as SVG that needs no script; `output` has shape and error_map. Empty
/// if it has no map, or one that cannot be drawn.
[[nodiscard]] std::string map_pictures(const nlohmann::json& output);

/// `around_worst` as a table of got and expected with bits; empty if there is none.
[[nodiscard]] std::string window_table(const nlohmann::json& output);

/// What typical faults look like.
[[nodiscard]] std::string map_key();

}  // namespace numcheck::report::views
