// Which of several readings of attention's tensors their numbers fit.
#pragma once

#include <cstddef>
#include <vector>

#include "diagnose/attention_reading.hpp"

namespace numcheck::diagnose {

/// Largest cosine of the angle between a given output (o, or dq, dv, dk) and what it would be of the tensors read so, over
/// a few rows, whatever the mask and whichever order heads of keys have, with the declared scale or without any: what is
/// wrong besides the layout shall not decide. Bias, dropout and sinks are left out. 0 if there is none of these outputs, or if
/// it would take too long.
[[nodiscard]] double likeness_of(const AttentionReading& reading, const std::vector<NamedTensor>& tensors);

/// The reading whose numbers fit far better than the others'; if there is none, the first one.
struct ChosenReading {
  std::size_t index = 0;
  enum class Certainty { none, likely, proven } certainty = Certainty::none;  ///< by the numbers
};
[[nodiscard]] ChosenReading choose(const std::vector<AttentionReading>& readings,
                                   const std::vector<NamedTensor>& tensors);

}  // namespace numcheck::diagnose
