// What the references of the activations share: parameters, the size of a task, and the special values that the
// declared arithmetic meets on its way.
#pragma once

#include <cmath>
#include <cstddef>

#include "op/activation_params.hpp"
#include "reference/activation_exact.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {

using tolerance::Tracked;

inline constexpr std::size_t kElementsPerTask = std::size_t{1} << 14;

/// The parameters as the device gets them: FP32 numbers.
[[nodiscard]] Clamp clamp_of(const op::ActivationParams& params);

/// Below it in magnitude, no product of four inputs and no intermediate result of an activation overflows FP32.
inline constexpr double kTame = 0x1p30;

template <class... Inputs>
[[nodiscard]] bool tame(Inputs... inputs) {
  return ((std::fabs(inputs) < kTame) && ...);
}

/// How the declared arithmetic came to a result: by a function value that was off by its bound, in FP32 by `plain`.
struct Declared {
  Tracked function;  ///< f(x) or f'(x); its bound is 0 where values only are wanted
  Tracked result;
  float plain = 0;  ///< the result of the same formula run in FP32
};

/// The element where inputs are not tame. The op is defined by FP32 arithmetic: NaN where that gives NaN, infinite
/// where it overflows on the way or in the end, whatever format the result is stored in. An element has NaN yardsticks,
/// which say that nothing is asked of it, where that is no matter of the formula alone: the function value may be of
/// either sign or zero, and is multiplied beyond FP32; or the result is within its bound of the largest FP32 number.
[[nodiscard]] Tracked settle(double exact, const Declared& declared);

}  // namespace numcheck::reference
