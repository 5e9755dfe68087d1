// Gates as they are written in the record.
#pragma once

#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "tolerance/judge.hpp"

namespace numcheck::report {

/// What a gate is about, as the record's "about" says it: "errors", "rounding", "pattern", "unwritten", "conduct",
/// "repetition".
[[nodiscard]] std::string_view about_name(tolerance::Criterion::About about) noexcept;

/// The gate of a full or a brief record. Without "about" it is about errors; without "ok" it compares. Throws
/// nlohmann::json::exception if a member is missing.
[[nodiscard]] tolerance::Criterion criterion_of(const nlohmann::json& criterion);

/// The largest measured / limit of two kinds of gates. Half an ulp of a 16- or 8-bit output is part of some limits, and
/// correct rounding uses all of it: these say nothing about the arithmetic as long as they hold.
struct Margins {
  std::optional<double> arithmetic;  ///< infinite for a gate that allows nothing and fails
  std::optional<double> rounding;
  /// The failed gate that has no ratio, because its limit is 0; empty if there is none.
  std::string_view without_ratio;
};

/// Over all runs and outputs of a case. The names belong to the record.
[[nodiscard]] Margins margins_of(const nlohmann::json& record);

}  // namespace numcheck::report
