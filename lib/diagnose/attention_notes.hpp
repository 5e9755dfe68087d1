// What is said of how attention's tensors were read.
#pragma once

#include <string>
#include <vector>

#include "diagnose/attention_likeness.hpp"
#include "diagnose/attention_reading.hpp"

namespace numcheck::diagnose {

/// What was read from the shapes, and how certain that is.
[[nodiscard]] std::string layout_note(const std::vector<AttentionReading>& readings, const ChosenReading& chosen);

/// Empty if every token is of a sequence.
[[nodiscard]] std::string left_tokens_note(const AttentionReading& reading);

}  // namespace numcheck::diagnose
