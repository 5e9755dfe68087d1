// Known issues that a site keeps apart from its plans.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

namespace numcheck::plan {

/// Reads {"version": 1, "known_issues": [{"op": "gemm", "match": ..., "cause": ..., "reason": ..., "expires": ...}]} and
/// adds every entry to the known issues of the cases that it matches, after those of the plan. Throws PlanError with all
/// mistakes at once. Entries that match no case are not mistakes: the file serves all plans. Returns the digest of what
/// the file says: a run with other known issues is another run.
std::string add_known_issues(std::vector<Case>& cases, const std::string& path, const Vocabulary& vocabulary,
                             const Limits& limits);

/// The same from text; `path` is used for messages.
std::string add_known_issues_from(std::string_view text, std::vector<Case>& cases, const std::string& path,
                                  const Vocabulary& vocabulary);

}  // namespace numcheck::plan
