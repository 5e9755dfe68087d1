// The fault that can be planted in a CUDA device itself; known to builds without CUDA, so that its name is an answer
// there and not a riddle.
#pragma once

#include <string>
#include <string_view>

#include "kernels/contract/backend.hpp"

namespace numcheck::kernels {

/// Planted by the backend `cuda` alone (kernels/cuda/illegal_address.hpp).
inline constexpr FaultInfo kDeviceFault = {
    "illegal_address",
    "backend cuda: a kernel writes to an address that nothing is mapped at, and poisons the process"};

/// Why a backend that does not know the fault cannot plant it, as a sentence.
[[nodiscard]] inline std::string not_planted_here(std::string_view fault) {
  return "the fault " + std::string(fault) + " can be planted in " +
         (fault == kDeviceFault.name ? "the backend cuda only, on a GPU" : "a simulated device only");
}

/// For backends in which no fault can be planted: yes if the call names none.
[[nodiscard]] inline Support takes_no_fault(const Call& call) {
  return call.inject.empty() ? Support{} : Support{false, not_planted_here(call.inject)};
}

}  // namespace numcheck::kernels
