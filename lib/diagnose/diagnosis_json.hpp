// A diagnosis for programs.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "diagnose/search.hpp"

namespace numcheck::diagnose {

/// {"case", "verdict": "correct" | "undecided" | "wrong", "explained", "output", "failing", "causes": [...], "excluded": [...], "notes"},
/// causes and what was excluded with their stable names.
[[nodiscard]] nlohmann::json diagnosis_json(const Subject& subject, const Diagnosis& diagnosis,
                                            std::span<const std::string> notes);

}  // namespace numcheck::diagnose
