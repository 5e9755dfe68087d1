// Ports of a call in the form that the launchers of our own kernels expect.
#pragma once

#include <span>
#include <string_view>

#include "kernels/contract/backend.hpp"
#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

/// The tensor of that port, which is dense and floating-point; its data is null if the case has no such port.
[[nodiscard]] Tensor tensor_of(std::span<const PortMemory> ports, std::string_view name);

/// First element of the port, whatever its format; null if the case has no such port.
[[nodiscard]] void* address_of(std::span<const PortMemory> ports, std::string_view name) noexcept;

}  // namespace numcheck::kernels::cuda
