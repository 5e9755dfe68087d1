#include "op/layernorm_bwd.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/norm_launch.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

NormBackward launch_of(const op::LayernormBwdParams& p, std::span<const PortMemory> ports) {
  NormBackward launch;
  launch.rows = p.rows;
  launch.hidden = p.hidden;
  launch.gamma_rule = gamma_rule_of(p);
  launch.dz = tensor_of(ports, "dz");
  launch.x = tensor_of(ports, "x");
  launch.gamma = tensor_of(ports, "gamma");
  launch.dx = tensor_of(ports, "dx");
  launch.dgamma = tensor_of(ports, "dgamma");
  launch.dbeta = tensor_of(ports, "dbeta");
  launch.mu = static_cast<const float*>(address_of(ports, "mu"));
  launch.rsigma = static_cast<const float*>(address_of(ports, "rsigma"));
  return launch;
}

/// What determines the kernel, and hence how many blocks write partial sums to the workspace.
NormBackward sizes_of(const op::LayernormBwdParams& p, const Call& call) {
  NormBackward launch;
  launch.rows = p.rows;
  launch.hidden = p.hidden;
  launch.gamma_rule = gamma_rule_of(p);
  launch.x.storage = storage_of(call.c->mode->first);
  return launch;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::LayernormBwdParams>(call.c->params);
  device.use();
  const std::size_t partial_bytes = layernorm_bwd_workspace(sizes_of(params, call));
  return {"own FP32 kernels, partial sums per block",
          {{"reduction", "threads of a row, rows of a block, blocks: each in a fixed order"}},
          partial_bytes,
          [&device, params, partial_bytes](std::span<const PortMemory> ports, std::byte* workspace) {
            device.use();
            NormBackward launch = launch_of(params, ports);
            launch.partial = reinterpret_cast<float*>(workspace);
            launch.partial_bytes = partial_bytes;
            return device.timed([&] {
              cuda_support::check(launch_layernorm_bwd(launch, device.stream()), "te-numcheck's layernorm_bwd kernels");
            });
          }};
}

}  // namespace

const Binding& layernorm_bwd() {
  static const CudaBinding binding{{"cuda", "layernorm_bwd"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
