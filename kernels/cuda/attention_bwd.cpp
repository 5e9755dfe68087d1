#include "op/attention_bwd.hpp"

#include <utility>

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

/// Derivatives of the scores are kept between the kernels of dk and dq if they take no more than this. It does not depend on
/// the memory that is free, so that a case is computed alike everywhere.
constexpr std::int64_t kMostKept = std::int64_t{512} << 20;

std::size_t kept_bytes(const op::AttentionBwdParams& p) {
  const std::int64_t most = kMostKept / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t rows = p.batches * p.heads * p.sq;
  return rows > 0 && p.sk <= most / rows ? static_cast<std::size_t>(rows * p.sk) * sizeof(float) : 0;
}

/// `dots`: one number per query.
AttentionBackward launch_of(const op::AttentionBwdParams& p, const AttentionPorts& heads,
                            std::span<const PortMemory> ports, float* dots, float* pairs) {
  const std::int64_t width = p.value_channels();
  AttentionBackward launch;
  launch.rules = heads.rules();
  launch.q = heads.heads("q", op::Side::queries, p.d);
  launch.k = heads.heads("k", op::Side::keys, p.d);
  launch.v = heads.heads("v", op::Side::keys, width);
  launch.gradient = heads.heads("do", op::Side::queries, width);
  launch.o = heads.heads("o", op::Side::queries, width);
  launch.lse = static_cast<const float*>(address_of(ports, "lse"));
  launch.dq = heads.heads("dq", op::Side::queries, p.d);
  launch.dk = heads.heads("dk", op::Side::keys, p.d);
  launch.dv = heads.heads("dv", op::Side::keys, width);
  launch.dbias = tensor_of(ports, "dbias");
  launch.dsoftmax_offset = static_cast<float*>(address_of(ports, "dsoftmax_offset"));
  launch.dots = dots;
  launch.pairs = pairs;
  return launch;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::AttentionBwdParams>(call.c->params);
  AttentionTables tables(params);
  const std::size_t kept = kept_bytes(params);  // first in the workspace, for alignment; then dots, then tables
  const std::size_t tables_at = kept + queries_of(params) * sizeof(float);
  const std::size_t workspace_bytes = tables_at + tables.bytes();
  return {kept > 0 ? "own FP32 FMA kernels, one for dk and dv, which keeps what dq sums"
                   : "own FP32 FMA kernels, one for dk and dv and one for dq",
          {{"tile", "64 queries, 64 keys"}, {"order", "ascending, tile by tile, without atomics"}},
          workspace_bytes,
          [&device, params, kept, tables_at, tables = std::move(tables)](std::span<const PortMemory> ports,
                                                                         std::byte* workspace) {
            device.use();
            tables.upload(device, workspace + tables_at);
            const AttentionBackward launch = launch_of(
                params, AttentionPorts(params, ports, tables, workspace + tables_at), ports,
                reinterpret_cast<float*>(workspace + kept), kept > 0 ? reinterpret_cast<float*>(workspace) : nullptr);
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
