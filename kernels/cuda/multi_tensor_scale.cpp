#include "op/multi_tensor_scale.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/multi_tensor_scale_kernel.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

MultiTensorScaleLaunch launch_of(const op::MultiTensorScaleParams& p, std::span<const PortMemory> ports) {
  return {.amaxes = static_cast<const float*>(address_of(ports, "amaxes")),
          .scales = static_cast<float*>(address_of(ports, "scales")),
          .scale_invs = static_cast<float*>(address_of(ports, "scale_invs")),
          .count = p.tensors * p.elements,
          .codes = p.format == "fp8_e5m2" ? Storage::fp8_e5m2 : Storage::fp8_e4m3,
          .epsilon = static_cast<float>(p.epsilon),
          .power_of_two = p.power_of_two};
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::MultiTensorScaleParams>(call.c->params);
  return {"own kernel", {{"order", "each by itself"}}, 0, [&device, p](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            return device.timed([&] {
              cuda_support::check(launch_multi_tensor_scale(launch_of(p, ports), device.stream()),
                                  "te-numcheck's kernel for scales of many tensors");
            });
          }};
}

}  // namespace

const Binding& multi_tensor_scale() {
  static const CudaBinding binding{
      {"cuda", "multi_tensor_scale"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
