#include "op/attention_fwd.hpp"

#include "kernels/cuda/attention_launch.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

AttentionForward launch_of(const op::AttentionFwdParams& p, std::span<const PortMemory> ports, const float* slopes) {
  AttentionForward launch;
  launch.rules = attention_rules(p, ports, slopes);
  launch.q = query_tensor(p, ports, "q", p.d);
  launch.k = key_tensor(p, ports, "k", p.d);
  launch.v = key_tensor(p, ports, "v", p.value_channels());
  launch.o = query_tensor(p, ports, "o", p.value_channels());
  launch.lse = static_cast<float*>(address_of(ports, "lse"));
  return launch;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::AttentionFwdParams>(call.c->params);
  std::vector<float> slopes = alibi_slopes(params);
  const std::size_t workspace_bytes = slopes.size() * sizeof(float);
  return {"own FP32 FMA kernel, online softmax",
          {{"tile", "64 queries, 64 keys"}, {"order", "keys ascending, tile by tile"}},
          workspace_bytes,
          [&device, params, slopes = std::move(slopes)](std::span<const PortMemory> ports, std::byte* workspace) {
            device.use();
            if (!slopes.empty()) {
              device.memory().upload(workspace, std::as_bytes(std::span(slopes)));
            }
            const AttentionForward launch = launch_of(params, ports, reinterpret_cast<const float*>(workspace));
            return device.timed([&] {
              cuda_support::check(launch_attention_fwd(launch, device.stream()), "te-numcheck's attention kernel");
            });
          }};
}

}  // namespace

const Binding& attention_fwd() {
  static const CudaBinding binding{{"cuda", "attention_fwd", kArithmetic}, &attention_obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
