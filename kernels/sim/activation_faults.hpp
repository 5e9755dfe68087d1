// The planted faults that the ops with an activation function share, as rows of their fault tables.
#pragma once

#include <string>

#include "kernels/sim/op_faults.hpp"

namespace numcheck::kernels::sim {

// Why such a fault cannot change the case, as a sentence; empty if it can.
[[nodiscard]] std::string needs_tanh(const Call& call);
[[nodiscard]] std::string needs_erf(const Call& call);
[[nodiscard]] std::string needs_exponential(const Call& call);
[[nodiscard]] std::string needs_factor_2(const Call& call);
[[nodiscard]] std::string needs_halves(const Call& call);
[[nodiscard]] std::string needs_clamp(const Call& call);

inline constexpr OpFault kErfForTanh{{"erf_for_tanh", "the tanh form of gelu is computed with erf"}, &needs_tanh};
inline constexpr OpFault kTanhForErf{{"tanh_for_erf", "gelu_erf is computed with tanh"}, &needs_erf};
inline constexpr OpFault kGeluConstant{{"gelu_constant", "gelu uses 0.04 instead of 0.044715"}, &needs_tanh};
inline constexpr OpFault kFactor2Missing{
    {"factor_2_missing", "gelu is x s(z) instead of x s(2z); the derivative of srelu is x instead of 2x"},
    &needs_factor_2};
inline constexpr OpFault kBf16Intermediate{{"bf16_intermediate", "tanh, erf or the sigmoid is rounded to BF16"},
                                           &needs_exponential};
inline constexpr OpFault kDerivativeSign{
    {"derivative_sign", "the part of the derivative that comes from tanh, erf or the sigmoid is subtracted"},
    &needs_exponential};
inline constexpr OpFault kHalvesSwapped{{"halves_swapped", "the gate is the second half of the row"}, &needs_halves};
inline constexpr OpFault kClampMissing{{"clamp_missing", "clamped_swiglu does not clamp"}, &needs_clamp};

}  // namespace numcheck::kernels::sim
