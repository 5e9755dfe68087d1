#include "op/layernorm_fwd.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/norm_launch.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

NormForward launch_of(const op::LayernormFwdParams& p, std::span<const PortMemory> ports) {
  NormForward launch;
  launch.rows = p.rows;
  launch.hidden = p.hidden;
  launch.epsilon = static_cast<float>(p.epsilon);
  launch.gamma_rule = gamma_rule_of(p);
  launch.x = tensor_of(ports, "x");
  launch.gamma = tensor_of(ports, "gamma");
  launch.beta = tensor_of(ports, "beta");
  launch.y = tensor_of(ports, "y");
  launch.mu = static_cast<float*>(address_of(ports, "mu"));
  launch.rsigma = static_cast<float*>(address_of(ports, "rsigma"));
  launch.scale = static_cast<const float*>(address_of(ports, "y_scale"));
  launch.amax = static_cast<float*>(address_of(ports, "y_amax"));
  return launch;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::LayernormFwdParams>(call.c->params);
  return {"own FP32 kernel, variance in a second pass",
          {{"reduction", "threads of a row in a fixed order"}},
          0,
          [&device, params](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            return device.timed([&] {
              cuda_support::check(launch_layernorm_fwd(launch_of(params, ports), device.stream()),
                                  "te-numcheck's layernorm_fwd kernel");
            });
          }};
}

}  // namespace

const Binding& layernorm_fwd() {
  static const CudaBinding binding{{"cuda", "layernorm_fwd"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
