// How the console view tells what is wrong with one output.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

/// Failed gates, how large the error is, which elements are wrong, what the op found, and the worst element; an output
/// that passes with a warning has what the backend declares in place of gates. Nothing for one that simply passes.
[[nodiscard]] std::string output_lines(const std::string& port, const nlohmann::json& output);

/// What the op found, a line for each.
[[nodiscard]] std::string finding_lines(const nlohmann::json& findings, std::size_t indent);

/// The tables of findings over steps; of more than 12 steps, the strangest of each twelfth.
[[nodiscard]] std::string series_lines(const nlohmann::json& findings, std::size_t indent);

/// Effective bits of the record's metrics: "8.5"; "exact" if there is no error; "0.0" if the error exceeds the result.
[[nodiscard]] std::string bits_text(const nlohmann::json& bits);

}  // namespace numcheck::report::views
