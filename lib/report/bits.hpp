// Compares the bits of two case records by the digests of their outputs.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// The runs of a record that have outputs.
[[nodiscard]] std::vector<const nlohmann::json*> runs_with_outputs(const nlohmann::json& record);

/// Runs of two records, each with outputs, in pairs: those with equal implementation, the first with the first if there are
/// several of them, then what is left in order. Null stands for the partner of a run that the other record lacks.
[[nodiscard]] std::vector<std::pair<const nlohmann::json*, const nlohmann::json*>> matching_runs(
    const nlohmann::json& left, const nlohmann::json& right);

/// Outputs whose digests differ in any pair of runs, or that one of them lacks; empty if all bits are the same.
[[nodiscard]] std::set<std::string> changed_outputs(const nlohmann::json& left, const nlohmann::json& right);

}  // namespace numcheck::report
