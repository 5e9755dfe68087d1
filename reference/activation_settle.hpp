// What the references of the activations share: parameters, the size of a task, and the special values that the
// declared arithmetic meets on its way.
#pragma once

#include <cmath>
#include <cstddef>

#include "op/activation_params.hpp"
#include "reference/activation_exact.hpp"

namespace numcheck::reference {

inline constexpr std::size_t kElementsPerTask = std::size_t{1} << 14;

/// The parameters as the device gets them: FP32 numbers.
[[nodiscard]] Clamp clamp_of(const op::ActivationParams& params);

/// Below it in magnitude, no product of four inputs and no intermediate result of an activation overflows FP32.
inline constexpr double kTame = 0x1p30;

template <class... Inputs>
[[nodiscard]] bool tame(Inputs... inputs) {
  return ((std::fabs(inputs) < kTame) && ...);
}

/// What an element is expected to be, where the declared arithmetic run in FP32 gives `plain`. The op is defined by
/// that arithmetic: NaN where it gives NaN, infinite where it overflows, on the way or in the end, whatever format the
/// result is stored in. Else y; also where y is so close to the largest FP32 number that its bound reaches beyond.
[[nodiscard]] double with_specials(double y, double bound, float plain);

}  // namespace numcheck::reference
