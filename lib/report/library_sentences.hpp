// The table of library versions as sentences.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// One sentence per op in the rows of library_changes; if there are several pairs of versions, one per op and pair.
[[nodiscard]] nlohmann::json library_sentences(const nlohmann::json& rows);

}  // namespace numcheck::report
