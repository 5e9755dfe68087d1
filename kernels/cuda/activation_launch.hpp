// From a case to the launch of its activation kernels.
#pragma once

#include <span>
#include <string_view>

#include "kernels/contract/backend.hpp"
#include "kernels/cuda/activation_kernel.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "op/activation_kind.hpp"
#include "op/activation_params.hpp"

namespace numcheck::kernels::cuda {

[[nodiscard]] Function function_of(op::Activation activation);

/// The launch without its output: shape, function, x, and dy if there is such a port.
[[nodiscard]] ActivationLaunch activation_launch(const op::ActivationParams& params, std::span<const PortMemory> ports);

/// Codes and scales in both layouts of the output that the case has, from one read of the values.
void quantise_mxfp8(const Tensor& values, std::span<const PortMemory> ports, cudaStream_t stream);

/// Bytes of the results of an MXFP8 output in the format of the port `input`; 0 if the case has no such output.
[[nodiscard]] std::size_t mxfp8_scratch(const Call& call, std::string_view input);

/// The names of an op's output ports.
struct ActivationOutput {
  std::string_view name;
  std::string_view scale;
  std::string_view amax;
};

/// The algorithm of the op whose kernel is `launch`. For an MXFP8 output it writes its results to scratch memory in the
/// format of x, which is the rounding that the op defines, and a second kernel quantises them from there.
[[nodiscard]] Algorithm activation_algorithm(cuda_support::CudaDevice& device, const Call& call,
                                             const ActivationOutput& output,
                                             cudaError_t (*launch)(const ActivationLaunch&, cudaStream_t));

}  // namespace numcheck::kernels::cuda
