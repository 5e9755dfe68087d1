// Known issues that a site keeps apart from its plans.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

namespace numcheck::plan {

struct KnownIssues {
  std::string digest;  ///< of what the file says: a run with other known issues is another run
  std::size_t entries = 0;
  std::vector<Place> unmatched;      ///< entries that match no case: no mistakes, as the file serves all plans
  std::vector<Diagnostic> warnings;  ///< of expiry, see Limits::today
};

/// Reads {"version": 1, "known_issues": [{"op": "gemm", "match": ..., "cause": ..., "reason": ..., "expires": ...}]} and
/// adds every entry to the known issues of the cases that it matches, after those of the plan. Throws PlanError with all
/// mistakes at once.
KnownIssues add_known_issues(std::vector<Case>& cases, const std::string& path, const Vocabulary& vocabulary,
                             const Limits& limits);

/// The same from text; `path` is used for messages.
KnownIssues add_known_issues_from(std::string_view text, std::vector<Case>& cases, const std::string& path,
                                  const Vocabulary& vocabulary, const Limits& limits);

}  // namespace numcheck::plan
