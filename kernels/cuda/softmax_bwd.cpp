#include "op/softmax_bwd.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda/softmax_shape.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  return {"own kernel",
          {{"order", "each thread in order of the columns, then a tree"}},
          0,
          [&device, p = op::from_params<op::SoftmaxBwdParams>(call.c->params)](std::span<const PortMemory> ports,
                                                                               std::byte*) {
            SoftmaxBackward launch;
            launch.shape = softmax_shape(p);
            launch.scale = static_cast<float>(p.scale);
            launch.dy = tensor_of(ports, "dy");
            launch.y = tensor_of(ports, "y");
            launch.dx = tensor_of(ports, "dx");
            device.use();
            return device.timed([&] {
              cuda_support::check(launch_softmax_bwd(launch, device.stream()), "te-numcheck's softmax kernel");
            });
          }};
}

}  // namespace

const Binding& softmax_bwd() {
  static const CudaBinding binding{{"cuda", "softmax_bwd"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
