// A sweep's rules other than its axes: zip, exclude, xfail. Used by the case decoder.
#pragma once

#include "plan/case_spec.hpp"

namespace numcheck::plan {

/// Each takes the key's value (null: not given) and returns false after a report. `spec` has its op and axes.
[[nodiscard]] bool decode_zip(CaseSpec& spec, const Node* node, Reporter& reporter);
[[nodiscard]] bool decode_exclude(CaseSpec& spec, const Node* node, const Vocabulary& vocabulary, Reporter& reporter);
[[nodiscard]] bool decode_xfail(CaseSpec& spec, const Node* node, const Vocabulary& vocabulary, Reporter& reporter);

/// Decodes "match", "cause", "error", "reason", "link" and "expires" of an object that describes a known failure of an op; nothing after
/// a report. Other keys are the caller's.
[[nodiscard]] std::optional<XFailRule> decode_known_failure(const Node& node, const op::Op& op,
                                                            const Vocabulary& vocabulary, Reporter& reporter);

/// Warns of an entry that has expired by `today`, an ISO date, or will within 30 days; nothing if `today` is empty.
void warn_of_expiry(const XFailRule& rule, std::string_view today, Reporter& reporter);

/// True for a calendar date written like 2026-01-31.
[[nodiscard]] bool is_iso_date(std::string_view text) noexcept;

}  // namespace numcheck::plan
