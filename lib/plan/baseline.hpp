// The baseline that a plan names.
#pragma once

#include <optional>
#include <string>

#include "plan/node.hpp"
#include "plan/plan.hpp"
#include "plan/reporter.hpp"

namespace numcheck::plan {

/// Decodes "baseline": a path relative to the file in which it is written, which may be one that the plan at `plan_path`
/// extends. Whether there is such a report is for those to say who read reports; nothing after a report of a mistake.
[[nodiscard]] std::optional<BaselineFile> decode_baseline(const Node& node, const std::string& plan_path,
                                                          const Limits& limits, Reporter& reporter);

}  // namespace numcheck::plan
