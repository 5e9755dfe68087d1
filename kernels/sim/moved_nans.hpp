// NaN of ops that move bits: FP32 arrays do not keep what distinguishes them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "kernels/contract/ports.hpp"

namespace numcheck::kernels::sim {

/// Gives each NaN of `to`, whose element i is element source(i) of `from`, the bits that it has there. Both ports are dense.
void move_nans(std::span<const PortMemory> ports, std::string_view from, std::string_view to,
               const std::function<std::size_t(std::size_t)>& source);

}  // namespace numcheck::kernels::sim
