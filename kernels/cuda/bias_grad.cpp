#include "op/bias_grad.hpp"

#include "kernels/cuda/activation_launch.hpp"
#include "kernels/cuda/bias_grad_kernel.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

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
  launch.dx = tensor_of(ports, "dx");
  launch.dbias = tensor_of(ports, "dbias");
  launch.scale = static_cast<const float*>(address_of(ports, "dx_scale"));
  launch.amax = static_cast<float*>(address_of(ports, "dx_amax"));
  launch.partial = reinterpret_cast<float*>(workspace);
  return launch;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::BiasGradParams>(call.c->params);
  return {"own FP32 kernel, slabs of rows, then the slabs",
          {{"order", "8 chains per slab of rows, 32 chains over the slabs"}},
          bias_grad_workspace(params.rows, params.hidden),
          [&device, params](std::span<const PortMemory> ports, std::byte* workspace) {
            device.use();
            return device.timed([&] {
              cuda_support::check(launch_bias_grad(launch_of(params, ports, workspace), device.stream()),
                                  "te-numcheck's bias_grad kernel");
            });
          }};
}

}  // namespace

const Binding& bias_grad() {
  static const CudaBinding binding{{"cuda", "bias_grad"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
