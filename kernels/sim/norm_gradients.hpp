// Gradients of row normalisations on a simulated device.
#pragma once

#include <span>
#include <string>

#include "kernels/contract/backend.hpp"
#include "op/norm_params.hpp"

namespace numcheck::kernels::sim {

/// Computes dx, dgamma and, if there is a mu, dbeta.
void run_norm_gradients(const op::NormParams& p, std::span<const PortMemory> ports, const std::string& fault);

}  // namespace numcheck::kernels::sim
