// A sweep's rules other than its axes: zip, exclude, xfail. Used by the case decoder.
#pragma once

#include "plan/case_spec.hpp"

namespace numcheck::plan {

/// Each takes the key's value (null: not given) and returns false after a report. `spec` has its op and axes.
[[nodiscard]] bool decode_zip(CaseSpec& spec, const Node* node, Reporter& reporter);
[[nodiscard]] bool decode_exclude(CaseSpec& spec, const Node* node, const Vocabulary& vocabulary, Reporter& reporter);
[[nodiscard]] bool decode_xfail(CaseSpec& spec, const Node* node, const Vocabulary& vocabulary, Reporter& reporter);

/// True for a calendar date written like 2026-01-31.
[[nodiscard]] bool is_iso_date(std::string_view text) noexcept;

}  // namespace numcheck::plan
