// A product of `gemm`, or of a group of `grouped_gemm`, for our own kernels.
#pragma once

#include <span>
#include <string>

#include "kernels/contract/backend.hpp"
#include "kernels/cuda/gemm_kernel.hpp"
#include "op/gemm.hpp"

namespace numcheck::kernels::cuda {

/// Why our kernels do not compute it, as a sentence; empty if they do. Only modes whose promises FP32 sums keep: computed in FP32,
/// the others would not be what their names say.
[[nodiscard]] std::string product_obstacle(const op::Mode& mode, const op::GemmParams& product);

/// What the kernel is told of it. Ports have their names in `gemm`.
[[nodiscard]] GemmLaunch gemm_launch(const op::GemmParams& product, std::span<const PortMemory> ports);

}  // namespace numcheck::kernels::cuda
