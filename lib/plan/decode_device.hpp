// "architecture" and "libraries" of an xfail entry's match.
#pragma once

#include "plan/device_condition.hpp"
#include "plan/node.hpp"
#include "plan/plan.hpp"
#include "plan/reporter.hpp"

namespace numcheck::plan {

/// Decodes "sm_90", {"from": "sm_80", "to": "sm_90"} (one end may be missing) or a list of them. A value with a mistake
/// is reported and not added.
void decode_architectures(const Node& node, DeviceCondition& condition, Reporter& reporter);

/// Decodes {"cublaslt": "13.1", "driver": {"from": "580", "to": "580.99"}}: for each library a version, a range or a
/// list of them.
void decode_libraries(const Node& node, DeviceCondition& condition, const Vocabulary& vocabulary, Reporter& reporter);

}  // namespace numcheck::plan
