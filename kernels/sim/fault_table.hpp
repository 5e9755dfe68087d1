// Planting arithmetic faults in a simulated product.
#pragma once

#include <string>
#include <string_view>

#include "kernels/sim/gemm.hpp"

namespace numcheck::kernels::sim {

/// Why the fault cannot change this case, as a sentence; empty if it can. Throws core::UsageError for a name that is
/// not among sim_faults(), suggesting the nearest one.
[[nodiscard]] std::string fault_obstacle(std::string_view fault, const SimGemm& gemm);

/// Changes the task so that it has the fault; an empty name changes nothing.
/// Precondition: fault_obstacle() is empty.
void plant_fault(std::string_view fault, const SimGemm& gemm, model::GemmTask& task);

/// What a device with the fault stores as amax.
[[nodiscard]] float amax_with_fault(std::string_view fault, float amax);

}  // namespace numcheck::kernels::sim
