#include "op/rope.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda/rope_kernel.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

std::string no_obstacle(const Call&) {
  return {};
}

RopeLaunch launch_of(const op::RopeParams& p, bool backward, std::span<const PortMemory> ports) {
  RopeLaunch launch;
  launch.seq = p.seq;
  launch.batch = p.batch;
  launch.heads = p.heads;
  launch.dim = static_cast<int>(p.dim);
  launch.rotated = static_cast<int>(p.rotated());
  launch.interleaved = p.interleaved;
  launch.batch_first = p.layout == "bshd";
  launch.backward = backward;
  launch.x = tensor_of(ports, backward ? "dy" : "x");
  launch.y = tensor_of(ports, backward ? "dx" : "y");
  launch.freqs = static_cast<const float*>(address_of(ports, "freqs"));
  launch.starts = static_cast<const std::int32_t*>(address_of(ports, "start_positions"));
  return launch;
}

template <bool backward>
Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::RopeParams>(call.c->params);
  return {"own kernel",
          {{"order", "elementwise, one sine and cosine per channel and token"}},
          0,
          [&device, p](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            return device.timed([&] {
              cuda_support::check(launch_rope(launch_of(p, backward, ports), device.stream()),
                                  "te-numcheck's rope kernel");
            });
          }};
}

}  // namespace

const Binding& rope_fwd() {
  static const CudaBinding binding{{"cuda", "rope_fwd"}, &no_obstacle, &algorithm<false>};
  return binding;
}

const Binding& rope_bwd() {
  static const CudaBinding binding{{"cuda", "rope_bwd"}, &no_obstacle, &algorithm<true>};
  return binding;
}

}  // namespace numcheck::kernels::cuda
