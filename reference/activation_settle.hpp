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

/// The parameters as passed to the device: FP32 numbers.
[[nodiscard]] Clamp clamp_of(const op::ActivationParams& params);

/// Of inputs below it in magnitude, no product of four and no intermediate result of an activation overflows FP32.
inline constexpr double kTame = 0x1p30;

template <class... Inputs>
[[nodiscard]] bool tame(Inputs... inputs) {
  return ((std::fabs(inputs) < kTame) && ...);
}

/// How the declared arithmetic arrives at a result.
struct Declared {
  Tracked function;  ///< f(x) or f'(x); its bound is 0 if only values are requested
  Tracked result;
  float plain = 0;  ///< the result of the same formula run in FP32
};

/// An element whose inputs are not tame. The op is defined by FP32 arithmetic: NaN where that yields NaN, infinite
/// where it overflows on the way or at the end, whatever format stores the result. Where the formula alone does not
/// decide that, the yardsticks are NaN, which means that the element is not checked: the function value may be zero or
/// of either sign, and is multiplied beyond FP32; or the result is within its bound of the largest FP32 number.
[[nodiscard]] Tracked settle(double exact, const Declared& declared);

}  // namespace numcheck::reference
