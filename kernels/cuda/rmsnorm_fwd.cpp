#include "op/rmsnorm_fwd.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/norm_launch.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

NormForward launch_of(const op::RmsnormFwdParams& p, std::span<const PortMemory> ports) {
  NormForward launch;
  launch.rows = p.rows;
  launch.hidden = p.hidden;
  launch.epsilon = static_cast<float>(p.epsilon);
  launch.gamma_rule = gamma_rule_of(p);
  launch.rounds_product = p.gamma_order == "hf";
  launch.x = tensor_of(ports, "x");
  launch.gamma = tensor_of(ports, "gamma");
  launch.y = tensor_of(ports, "y");
  launch.rsigma = static_cast<float*>(address_of(ports, "rsigma"));
  launch.scale = static_cast<const float*>(address_of(ports, "y_scale"));
  launch.amax = static_cast<float*>(address_of(ports, "y_amax"));
  return launch;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::RmsnormFwdParams>(call.c->params);
  return {"own FP32 kernel",
          {{"reduction", "threads of a row in a fixed order"}},
          0,
          [&device, params](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            return device.timed([&] {
              cuda_support::check(launch_rmsnorm_fwd(launch_of(params, ports), device.stream()),
                                  "te-numcheck's rmsnorm_fwd kernel");
            });
          }};
}

}  // namespace

const Binding& rmsnorm_fwd() {
  static const CudaBinding binding{{"cuda", "rmsnorm_fwd"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
