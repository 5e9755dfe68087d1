#include "kernels/cuda/activation_bwd.hpp"

#include "kernels/cuda/activation_launch.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

Algorithm algorithm(CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::ActivationParams>(call.c->params);
  return {"own FP32 kernel, element by element",
          {{"access", "16 bytes per thread where aligned"}},
          0,
          [&device, params](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            ActivationLaunch launch = activation_launch(params, ports);
            launch.out = tensor_of(ports, "dx");
            launch.scale = static_cast<const float*>(address_of(ports, "dx_scale"));
            launch.amax = static_cast<float*>(address_of(ports, "dx_amax"));
            return device.timed(
                [&] { check(launch_activation_bwd(launch, device.stream()), "own activation_bwd kernel"); });
          }};
}

}  // namespace

const Binding& activation_bwd() {
  static const CudaBinding binding{{"cuda", "activation_bwd"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
