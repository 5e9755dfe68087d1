#include "op/grouped_gemm.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/contract/group_ports.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/grouped_gemm_kernel.hpp"
#include "kernels/cuda/storage.hpp"
#include "kernels/cuda_support/addend.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

static_assert(op::kMostGroups <= kGroupsAtOnce);

constexpr std::array<std::string_view, 4> kModes = {"fp32", "fp32_pedantic", "bf16", "fp16"};

GroupedGemmLaunch launch_of(const op::GroupedGemmParams& p, const std::vector<op::GemmParams>& products,
                            const std::vector<GroupPorts>& groups) {
  GroupedGemmLaunch launch;
  launch.groups = static_cast<int>(groups.size());
  launch.trans_a = p.trans_a;
  launch.trans_b = p.trans_b;
  launch.alpha = static_cast<float>(p.alpha);
  launch.beta = static_cast<float>(p.beta);
  launch.input = storage_of(port_memory(groups.front().memory(), "a").port->dtype);
  launch.output = storage_of(port_memory(groups.front().memory(), "d").port->dtype);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto data = [&](std::string_view name) { return first_element(find_port(groups[i].memory(), name)); };
    GroupLaunch& group = launch.group[i];
    group.a = data("a");
    group.b = data("b");
    group.c = data(p.in_place ? "d" : "c");
    group.d = data("d");
    group.m = static_cast<std::int32_t>(products[i].m);
    group.n = static_cast<std::int32_t>(products[i].n);
    group.k = static_cast<std::int32_t>(products[i].k);
  }
  return launch;
}

std::string obstacle(const Call& call) {
  if (std::ranges::find(kModes, call.c->mode->name) == kModes.end()) {
    return fmt::format(
        "te-numcheck's own kernel computes in FP32 only, for the modes fp32, fp32_pedantic, bf16 and fp16, not {}",
        call.c->mode->name);
  }
  return {};
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::GroupedGemmParams>(call.c->params);
  return {"own FP32 FMA kernel for all groups, sequential k",
          {{"tile", "64x64"}, {"order", "k ascending, one fma chain per output"}},
          0,
          [&device, p, products = op::products_of(p)](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            const std::vector<GroupPorts> groups = groups_of(ports, products.size());
            if (p.in_place) {
              for (const GroupPorts& group : groups) {
                cuda_support::copy_addend(group.memory(), device.stream());
              }
            }
            return device.timed([&] {
              cuda_support::check(launch_grouped_gemm(launch_of(p, products, groups), device.stream()),
                                  "te-numcheck's grouped gemm kernel");
            });
          }};
}

}  // namespace

// Every group as the kernel of `gemm` computes it, in one launch. Only modes that compute in FP32, like there.
const Binding& grouped_gemm() {
  static const CudaBinding binding{{"cuda", "grouped_gemm", kArithmetic}, &obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
