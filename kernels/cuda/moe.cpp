#include "op/moe.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/moe_kernel.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

std::string no_obstacle(const Call&) {
  return {};
}

template <class Launch>
Algorithm algorithm(cuda_support::CudaDevice& device, std::string order, Launch launch) {
  return {
      "own kernel", {{"order", std::move(order)}}, 0, [&device, launch](std::span<const PortMemory> ports, std::byte*) {
        device.use();
        return device.timed(
            [&] { cuda_support::check(launch(ports, device.stream()), "te-numcheck's mixture-of-experts kernel"); });
      }};
}

template <class P>
MoeLaunch launch_of(const P& p, std::span<const PortMemory> ports) {
  MoeLaunch launch;
  launch.tokens = p.tokens;
  launch.hidden = p.hidden;
  launch.topk = p.topk;
  launch.x = tensor_of(ports, "x");
  launch.y = tensor_of(ports, "y");
  launch.map = static_cast<const std::int32_t*>(address_of(ports, "row_id_map"));
  launch.probs = static_cast<const float*>(address_of(ports, "probs"));
  return launch;
}

Algorithm permute_algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::MoePermuteParams>(call.c->params);
  return algorithm(device, "rows moved", [p](std::span<const PortMemory> ports, cudaStream_t stream) {
    return launch_moe_permute(launch_of(p, ports), stream);
  });
}

Algorithm unpermute_algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::MoeUnpermuteParams>(call.c->params);
  return algorithm(device, "experts ascending, every step rounded to the tensor's format",
                   [p](std::span<const PortMemory> ports, cudaStream_t stream) {
                     return launch_moe_unpermute(launch_of(p, ports), stream);
                   });
}

RouterScore score_of(const std::string& name) {
  return name == "sigmoid"        ? RouterScore::sigmoid
         : name == "softmax_post" ? RouterScore::softmax_post
                                  : RouterScore::softmax_pre;
}

Algorithm router_algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::RouterTopkParams>(call.c->params);
  return algorithm(device, "one warp per token", [p](std::span<const PortMemory> ports, cudaStream_t stream) {
    RouterLaunch launch;
    launch.tokens = p.tokens;
    launch.experts = static_cast<int>(p.experts);
    launch.topk = static_cast<int>(p.topk);
    launch.score = score_of(p.score);
    launch.scaling = static_cast<float>(p.scaling);
    launch.logits = tensor_of(ports, "logits");
    launch.probs = tensor_of(ports, "probs");
    launch.map = static_cast<std::uint8_t*>(address_of(ports, "routing_map"));
    return launch_router_topk(launch, stream);
  });
}

}  // namespace

const Binding& moe_permute() {
  static const CudaBinding binding{{"cuda", "moe_permute"}, &no_obstacle, &permute_algorithm};
  return binding;
}

const Binding& moe_unpermute() {
  static const CudaBinding binding{{"cuda", "moe_unpermute"}, &no_obstacle, &unpermute_algorithm};
  return binding;
}

const Binding& router_topk() {
  static const CudaBinding binding{{"cuda", "router_topk"}, &no_obstacle, &router_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
