// A part of attention, as attention of its own: few heads of one sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

/// The sequence of which most elements of that output are wrong, and two of its heads: that with most of these, and another one.
/// All of its heads if queries share keys, because which share which may be what is wrong. Nothing if the subject is no
/// attention, is no larger than that, if its tensors are packed or ragged, or if the output is a sum over sequences.
[[nodiscard]] std::optional<Subject> cropped_attention(const Subject& subject, std::string_view output,
                                                       std::span<const std::uint8_t> is_wrong);

/// A head of a sequence, and where it is.
struct WrongHead {
  Subject subject;
  std::string place;  ///< "head 2 of sequence 1"
};

/// The only head that has wrong elements of that output, sixteen at least, as attention of its own. Nothing where
/// cropped_attention gives nothing either, with ALiBi, whose slopes depend on how many heads there are, and of gradients of keys
/// that heads share.
[[nodiscard]] std::optional<WrongHead> only_wrong_head(const Subject& subject, std::string_view output,
                                                       std::span<const std::uint8_t> is_wrong);

}  // namespace numcheck::diagnose
