// Failures, or warnings, that look alike: of each kind a view shows one in full.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

struct CaseGroup {
  std::string status;              ///< of all its cases
  std::string what;                ///< "FP32 asked, TF32 ran"
  std::vector<std::size_t> cases;  ///< indices, in order
};

/// Groups cases that did not end well by what is wrong with them, in this order of preference: a cause that their findings
/// name; a precision class that was not asked for; op and first failed gate; for other statuses, op and reason. Largest
/// groups first, then in the record's order.
[[nodiscard]] std::vector<CaseGroup> failure_groups(const nlohmann::json& cases);

/// Groups the cases that end as warnings by what their backends declare.
[[nodiscard]] std::vector<CaseGroup> warning_groups(const nlohmann::json& cases);

/// fail, xpass, error, crashed, timeout.
[[nodiscard]] bool is_failure(const nlohmann::json& record);

}  // namespace numcheck::report
