// Failing runs that have one named cause, grouped: "24 cases, one cause".
#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Groups the runs that did not pass and whose findings name a cause:
///
///   [{cause: "the last 1 of k is missing", op, backend, implementation: "algo 66, split-k 2", modes, cases, runs,
///     first (digest), first_id}]    most cases first, then in the record's order
///
/// The implementation is the algorithm and its split factor, or, of libraries that do not say them, the label without
/// its workspace. A finding that carries a limit explains nothing: it is a gate.
[[nodiscard]] nlohmann::json causes(std::span<const nlohmann::json> cases);

/// One line about a failed case: its identifier, and its first named cause with the implementation, or the first gate, or
/// why it has no numbers.
[[nodiscard]] std::string failure_sentence(const nlohmann::json& record);

}  // namespace numcheck::report
