// A part of attention, as attention of its own: few heads of one sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

/// The sequence of which most elements of that output are wrong, and two of its heads: that with most of these, and another one.
/// All of its heads if queries share keys, because which share which may be what is wrong. Nothing if the subject is no
/// attention, is no larger than that, if its tensors are packed or ragged, or if the output is a sum over sequences.
[[nodiscard]] std::optional<Subject> cropped_attention(const Subject& subject, std::string_view output,
                                                       std::span<const std::uint8_t> is_wrong);

}  // namespace numcheck::diagnose
