#include "op/dropout.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/dropout_kernel.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

std::string no_obstacle(const Call&) {
  return {};
}

DropoutLaunch launch_of(const op::DropoutParams& p, std::span<const PortMemory> ports, bool backward) {
  DropoutLaunch launch;
  launch.elements = p.elements;
  launch.threshold = static_cast<unsigned>(256 * p.p);
  launch.scale = 1.0F / (1.0F - static_cast<float>(p.p));
  launch.seed = static_cast<std::uint64_t>(p.rng_seed);
  launch.x = tensor_of(ports, backward ? "dy" : "x");
  launch.y = tensor_of(ports, backward ? "dx" : "y");
  launch.mask = static_cast<std::uint8_t*>(address_of(ports, "mask"));
  return launch;
}

template <bool backward>
Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::DropoutParams>(call.c->params);
  return {"own kernel",
          {{"order", "Philox4x32-10, one random byte per element"}},
          0,
          [&device, p](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            return device.timed([&] {
              const DropoutLaunch launch = launch_of(p, ports, backward);
              cuda_support::check(
                  backward ? launch_dropout_bwd(launch, device.stream()) : launch_dropout_fwd(launch, device.stream()),
                  "te-numcheck's dropout kernel");
            });
          }};
}

}  // namespace

const Binding& dropout_fwd() {
  static const CudaBinding binding{{"cuda", "dropout_fwd"}, &no_obstacle, &algorithm<false>};
  return binding;
}

const Binding& dropout_bwd() {
  static const CudaBinding binding{{"cuda", "dropout_bwd"}, &no_obstacle, &algorithm<true>};
  return binding;
}

}  // namespace numcheck::kernels::cuda
