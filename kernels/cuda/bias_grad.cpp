#include "op/bias_grad.hpp"

#include <fmt/format.h>

#include "kernels/cuda/activation_launch.hpp"
#include "kernels/cuda/bias_grad_kernel.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda/quantize_kernel.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

/// Bytes of partial sums, rounded up so that what follows them is aligned.
std::size_t partial_bytes(const op::BiasGradParams& p) {
  constexpr std::size_t kAlignment = 256;
  return (bias_grad_workspace(p.rows, p.hidden) + kAlignment - 1) / kAlignment * kAlignment;
}

/// Results of an MXFP8 dx: in scratch memory after the partial sums, in the format of dy. Without an activation they are dy.
Tensor mxfp8_values(const op::BiasGradParams& p, std::span<const PortMemory> ports, std::byte* workspace) {
  const Tensor dy = tensor_of(ports, "dy");
  return p.fused == "none" ? Tensor{} : Tensor{workspace + partial_bytes(p), dy.storage};
}

BiasGradLaunch launch_of(const op::BiasGradParams& p, std::span<const PortMemory> ports, std::byte* workspace) {
  BiasGradLaunch launch;
  launch.fused = p.fused != "none";
  if (launch.fused) {
    launch.function = function_of(op::activation_kind(p.fused).function);
  }
  launch.rows = p.rows;
  launch.hidden = p.hidden;
  launch.dy = tensor_of(ports, "dy");
  launch.x = tensor_of(ports, "x");
  launch.dx = op::is_mxfp8(p.output) ? mxfp8_values(p, ports, workspace) : tensor_of(ports, "dx");
  launch.dbias = tensor_of(ports, "dbias");
  launch.scale = static_cast<const float*>(address_of(ports, "dx_scale"));
  launch.amax = static_cast<float*>(address_of(ports, "dx_amax"));
  launch.partial = reinterpret_cast<float*>(workspace);
  return launch;
}

std::string obstacle(const Call& call) {
  const auto p = op::from_params<op::BiasGradParams>(call.c->params);
  return p.has_transpose() && p.rows > kMaxTransposedRows
             ? fmt::format("te-numcheck's own kernel transposes at most {} rows", kMaxTransposedRows)
             : std::string();
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::BiasGradParams>(call.c->params);
  return {"own FP32 kernel, slabs of rows, then the slabs",
          {{"order", "8 chains per slab of rows, 32 chains over the slabs"}},
          partial_bytes(params) + mxfp8_scratch(call, "dy"),
          [&device, params](std::span<const PortMemory> ports, std::byte* workspace) {
            device.use();
            const BiasGradLaunch launch = launch_of(params, ports, workspace);
            return device.timed([&] {
              cuda_support::check(launch_bias_grad(launch, device.stream()), "te-numcheck's bias_grad kernel");
              if (op::is_mxfp8(params.output)) {
                quantise_mxfp8(launch.fused ? launch.dx : launch.dy, ports, device.stream());
              }
              if (params.has_transpose()) {
                cuda_support::check(launch_transpose(launch.dx.data, tensor_of(ports, "dx_t").data, params.rows,
                                                     params.hidden, 1, device.stream()),
                                    "te-numcheck's transpose kernel");
              }
            });
          }};
}

}  // namespace

const Binding& bias_grad() {
  static const CudaBinding binding{{"cuda", "bias_grad"}, &obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
