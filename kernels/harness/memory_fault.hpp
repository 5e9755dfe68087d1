// Faults that the harness plants after a launch, in device memory or as an error, to test the checks themselves.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/contract/backend.hpp"

namespace numcheck::kernels::harness {

/// True if the harness knows the fault.
[[nodiscard]] bool is_memory_fault(std::string_view name) noexcept;

/// Why the fault cannot be planted in a case with these ports ("needs an output with elements"); empty if it can.
[[nodiscard]] std::string memory_fault_obstacle(std::string_view name, std::span<const PortMemory> ports);

/// Plants the fault after launch number `repeat` (from 0), in the first non-empty output unless the fault concerns
/// another port; `workspace_end` is the first byte after the workspace. Precondition: no obstacle.
void plant_memory_fault(std::string_view name, int repeat, DeviceMemory& memory, std::span<const PortMemory> ports,
                        std::byte* workspace_end);

}  // namespace numcheck::kernels::harness
