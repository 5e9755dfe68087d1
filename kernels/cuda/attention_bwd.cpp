#include "op/attention_bwd.hpp"

#include "kernels/cuda/attention_launch.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

std::size_t queries_of(const op::AttentionBwdParams& p) {
  return static_cast<std::size_t>(p.batches * p.heads * p.sq);
}

/// `workspace`: one number per query, then ALiBi's slopes.
AttentionBackward launch_of(const op::AttentionBwdParams& p, std::span<const PortMemory> ports, float* workspace) {
  const std::int64_t width = p.value_channels();
  AttentionBackward launch;
  launch.rules = attention_rules(p, ports, workspace + queries_of(p));
  launch.q = query_tensor(p, ports, "q", p.d);
  launch.k = key_tensor(p, ports, "k", p.d);
  launch.v = key_tensor(p, ports, "v", width);
  launch.gradient = query_tensor(p, ports, "do", width);
  launch.o = query_tensor(p, ports, "o", width);
  launch.lse = static_cast<const float*>(address_of(ports, "lse"));
  launch.dq = query_tensor(p, ports, "dq", p.d);
  launch.dk = key_tensor(p, ports, "dk", p.d);
  launch.dv = key_tensor(p, ports, "dv", width);
  launch.dbias = tensor_of(ports, "dbias");
  launch.dsoftmax_offset = static_cast<float*>(address_of(ports, "dsoftmax_offset"));
  launch.dots = workspace;
  return launch;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::AttentionBwdParams>(call.c->params);
  std::vector<float> slopes = alibi_slopes(params);
  const std::size_t workspace_bytes = (queries_of(params) + slopes.size()) * sizeof(float);
  return {"own FP32 FMA kernels, one per gradient",
          {{"tile", "64 queries, 64 keys"}, {"order", "ascending, tile by tile, without atomics"}},
          workspace_bytes,
          [&device, params, slopes = std::move(slopes)](std::span<const PortMemory> ports, std::byte* workspace) {
            auto* const numbers = reinterpret_cast<float*>(workspace);
            device.use();
            if (!slopes.empty()) {
              device.memory().upload(reinterpret_cast<std::byte*>(numbers + queries_of(params)),
                                     std::as_bytes(std::span(slopes)));
            }
            const AttentionBackward launch = launch_of(params, ports, numbers);
            return device.timed([&] {
              cuda_support::check(launch_attention_bwd(launch, device.stream()),
                                  "te-numcheck's kernels of attention's gradients");
            });
          }};
}

}  // namespace

const Binding& attention_bwd() {
  static const CudaBinding binding{{"cuda", "attention_bwd", kArithmetic}, &attention_obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
