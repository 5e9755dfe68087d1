// Values that a query must not see.
#pragma once

#include <vector>

#include "op/reference.hpp"
#include "reference/attention_problem.hpp"

namespace numcheck::reference {

/// Kernels that give masked keys a weight of 0 and multiply them all the same make NaN of values that are NaN or infinite:
/// 0 NaN = NaN. Adds a finding about o's pattern, with the share of the elements that are wrongly NaN whose channel has such
/// a value among the keys that the query does not see; none if few of the elements that should have it are NaN.
void explain_leaks(const op::FindingRequest& request, const AttentionProblem& problem,
                   std::vector<op::Finding>& findings);

/// The same of gradients: 0 times what is NaN or infinite, and a gradient of 0 times it, make NaN of dq where a key that the
/// query does not see holds such values, or its value does, and of dk and dv where a query that does not see the key holds
/// them, or its gradient.
void explain_gradient_leaks(const op::FindingRequest& request, const AttentionProblem& problem,
                            std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
