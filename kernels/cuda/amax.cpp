#include "op/amax.hpp"

#include "kernels/cuda/amax_kernel.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

AmaxLaunch launch_of(const op::AmaxParams& p, std::span<const PortMemory> ports) {
  AmaxLaunch launch;
  launch.x = tensor_of(ports, "x");
  launch.elements = p.rows * p.cols;
  launch.amax = static_cast<float*>(address_of(ports, "amax"));
  launch.scale = static_cast<float*>(address_of(ports, "scale"));
  launch.codes = p.format == "fp8_e5m2" ? Storage::fp8_e5m2 : Storage::fp8_e4m3;
  launch.epsilon = static_cast<float>(p.epsilon);
  launch.power_of_two = p.power_of_two;
  return launch;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::AmaxParams>(call.c->params);
  return {"own kernel", {{"order", "any: a maximum"}}, 0, [&device, p](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            return device.timed([&] {
              cuda_support::check(launch_amax(launch_of(p, ports), device.stream()), "te-numcheck's kernel for amaxes");
            });
          }};
}

}  // namespace

const Binding& amax() {
  static const CudaBinding binding{{"cuda", "amax"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
