// An amax and the codes of its tensor say the same.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

inline constexpr op::OwnGate kAmaxOfCodes{
    "amax of codes", "how far the largest code is from amax times the scale, rounded and saturated: of its own size"};

/// A kernel that stores sat(RN(x s)) and amax = max |x| stores sat(RN(amax s)) as its largest code: rounding is monotone. A
/// gate of each `<tensor>_amax` that was delivered beside FP8 codes of its tensor, whatever either may err. FP32 products with
/// the scale may differ by a rounding. None where numbers of the tensor are not finite or were not written.
[[nodiscard]] std::vector<op::Finding> judge_amaxes(const op::FindingRequest& request);

}  // namespace numcheck::reference
