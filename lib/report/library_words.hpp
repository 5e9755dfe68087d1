// The table of a library's versions in sentences.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// One sentence for every op of the rows of library_changes; where there are several pairs of versions, one for every
/// op and pair.
[[nodiscard]] nlohmann::json library_sentences(const nlohmann::json& rows);

}  // namespace numcheck::report
