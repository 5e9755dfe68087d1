// Which results changed bits from one version of a library to another, from the record's cases alone.
#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Joins cases that differ only in the version after their backend's name ("transformer_engine@2.20.2"). The version
/// that comes first in the record is the base; each other one is compared with it.
///
/// {"rows": [{op, mode, backend: "transformer_engine", base: "2.20.2", other: "2.11.0",
///            cases: identical + changed + not_comparable + neither,
///            identical, changed: compared by the digests of all outputs of all runs,
///            not_comparable: one of the two has no outputs, or other ones from run to run,
///            neither: without outputs in both versions,
///            changes: [{case, other_case (digests), id, elements (of all outputs), outputs (that changed),
///                       of (how many outputs there are), error_over_limit: {base, other}}]    smallest first,
///            reasons: [{text, cases}]    why not comparable, most frequent first}],
///  "sentences": ["layernorm_fwd: bit-identical in 120 of 120 cases", ...]}    one per op (and pair of versions)
///
/// Rows are in the record's order. Runs are joined as in override_effect.
[[nodiscard]] nlohmann::json library_changes(std::span<const nlohmann::json> cases);

}  // namespace numcheck::report
