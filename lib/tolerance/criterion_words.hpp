// A gate in words: one wording for the reasons in the record and for every view.
#pragma once

#include <string>

#include "tolerance/judge.hpp"

namespace numcheck::tolerance {

/// What a failed gate found: "G2 spread 5.8 > 3"; "G0 pattern: 1 element"; "class: expected fp32, observed tf32_rne".
/// Gates that allow nothing have no ratio, so they are not written as "1 > 0".
[[nodiscard]] std::string words_of(const Criterion& criterion);

}  // namespace numcheck::tolerance
