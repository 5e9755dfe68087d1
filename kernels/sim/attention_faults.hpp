// Faults of simulated attention.
#pragma once

#include <span>

#include "kernels/sim/op_faults.hpp"

namespace numcheck::kernels::sim {

/// Those of each direction, with the cases that they cannot change.
[[nodiscard]] std::span<const OpFault> attention_fwd_faults() noexcept;
[[nodiscard]] std::span<const OpFault> attention_bwd_faults() noexcept;

}  // namespace numcheck::kernels::sim
