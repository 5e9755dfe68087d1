// Sequences that have no queries, or no keys.
#pragma once

#include <vector>

#include "op/reference.hpp"
#include "reference/attention_problem.hpp"

namespace numcheck::reference {

/// Libraries have been seen to skip such sequences instead of writing zeros (and the log-sum-exp of the sink): o and lse of
/// queries without keys in the forward pass, dq of such queries and dk and dv of keys without queries in the backward
/// pass, with positions beyond their lengths where the layout has them. Adds for each output
///   - a finding about elements that were not written, with their share of all NaN and infinities in the wrong places
///   - where heads share keys, dk and dv are sums of what was not written: a finding about numbers has the share of the
///     squared error that is in keys of such sequences
void explain_empty_sequences(const op::FindingRequest& request, const AttentionProblem& problem,
                             std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
