#include "op/attention_fwd.hpp"

#include <string_view>
#include <utility>

#include "kernels/cuda/attention_launch.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

AttentionForward launch_of(const op::AttentionFwdParams& p, const AttentionPorts& ports, float* lse, float* max_logit) {
  AttentionForward launch;
  launch.rules = ports.rules();
  launch.q = ports.heads("q", op::Side::queries, p.d);
  launch.k = ports.heads("k", op::Side::keys, p.d);
  launch.v = ports.heads("v", op::Side::keys, p.value_channels());
  launch.o = ports.heads("o", op::Side::queries, p.value_channels());
  launch.lse = lse;
  launch.max_logit = max_logit;
  return launch;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::AttentionFwdParams>(call.c->params);
  AttentionTables tables(params);
  const std::size_t workspace_bytes = tables.bytes();
  return {"own FP32 FMA kernel, online softmax",
          {{"tile", "64 queries, 64 keys"}, {"order", "keys ascending, tile by tile"}},
          workspace_bytes,
          [&device, params, tables = std::move(tables)](std::span<const PortMemory> ports, std::byte* workspace) {
            device.use();
            tables.upload(device, workspace);
            const auto statistic = [ports](std::string_view name) {
              return static_cast<float*>(address_of(ports, name));
            };
            const AttentionForward launch = launch_of(params, AttentionPorts(params, ports, tables, workspace),
                                                      statistic("lse"), statistic("max_logit"));
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
