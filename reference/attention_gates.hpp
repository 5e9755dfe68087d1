// What attention asks of its outputs besides their errors.
#pragma once

#include <span>
#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Those of a mask that the device drew (attention_dropout_mask.hpp) and of amaxes (amax_of_codes.hpp).
[[nodiscard]] std::span<const op::OwnGate> attention_gates();
[[nodiscard]] std::vector<op::Finding> judge_attention_itself(const op::FindingRequest& request);

}  // namespace numcheck::reference
