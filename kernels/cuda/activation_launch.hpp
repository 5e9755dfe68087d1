// From a case to the launch of an activation kernel.
#pragma once

#include <span>

#include "kernels/backend.hpp"
#include "kernels/cuda/activation_kernel.hpp"
#include "op/activation_kind.hpp"
#include "op/activation_params.hpp"

namespace numcheck::kernels::cuda {

[[nodiscard]] Function function_of(op::Activation activation);

/// The launch without its output: shape, function, x, and dy if there is such a port.
[[nodiscard]] ActivationLaunch activation_launch(const op::ActivationParams& params, std::span<const PortMemory> ports);

}  // namespace numcheck::kernels::cuda
