// Which results changed bits between versions of a library, computed from the record's cases alone.
#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Joins cases that differ only in the version after the backend's name ("transformer_engine@2.20.2"). The first
/// version in the record is the base; every other version is compared with it.
///
/// {"rows": [{op, mode, backend: "transformer_engine", base: "2.20.2", other: "2.11.0",
///            cases: identical + changed + not_comparable + neither,
///            identical, changed: by the digests of all outputs of all runs,
///            not_comparable: one of the two has no outputs, or is not deterministic,
///            neither: no outputs in either version,
///            changes: [{case, other_case (digests), id, elements (of all outputs), outputs (that changed),
///                       of (how many outputs there are), error_over_limit: {base, other}}]    smallest first,
///            reasons: [{text, cases}]    why not comparable, most frequent first}],
///  "sentences": ["layernorm_fwd: bit-identical in 120 of 120 cases", ...]}    one per op (and pair of versions)
///
/// Rows are in the record's order. Runs are joined as in override_effect.
[[nodiscard]] nlohmann::json library_changes(std::span<const nlohmann::json> cases);

}  // namespace numcheck::report
