// How much of the outputs was judged, in words that all views share.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

/// Of the metrics of an output: "judged 99.8 %", rounded down; empty if all elements that were compared were judged, or
/// the report does not say.
[[nodiscard]] std::string judged_text(const nlohmann::json& metrics);

/// "judged 99.8 % of d in gemm/…: the least of 3 cases with elements that are not judged"; empty if there are none.
[[nodiscard]] std::string judged_sentence(const nlohmann::json& report);

}  // namespace numcheck::report::views
