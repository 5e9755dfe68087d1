// The fault that can be planted in a CUDA device itself. Builds without CUDA know its name too, so that they can say why
// it cannot be planted.
#pragma once

#include <string>
#include <string_view>

#include "kernels/contract/backend.hpp"

namespace numcheck::kernels {

/// Only the backend `cuda` plants it (kernels/cuda/illegal_address.hpp).
inline constexpr FaultInfo kDeviceFault = {
    "illegal_address",
    "backend cuda: a kernel writes to an unmapped address, after which the process cannot use the device"};

/// A sentence saying why a backend that does not know the fault cannot plant it.
[[nodiscard]] inline std::string not_planted_here(std::string_view fault) {
  return "the fault " + std::string(fault) + " can only be planted in " +
         (fault == kDeviceFault.name ? "the backend cuda, on a GPU" : "a simulated device");
}

/// For backends in which no fault can be planted: yes if the call names none.
[[nodiscard]] inline Support takes_no_fault(const Call& call) {
  return call.inject.empty() ? Support{} : Support{false, not_planted_here(call.inject)};
}

}  // namespace numcheck::kernels
