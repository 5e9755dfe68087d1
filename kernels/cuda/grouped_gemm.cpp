#include "op/grouped_gemm.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernels/contract/group_ports.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/gemm_launch.hpp"
#include "kernels/cuda/grouped_gemm_kernel.hpp"
#include "kernels/cuda_support/addend.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

std::vector<op::GemmParams> products_of(const Call& call) {
  return op::products_of(op::from_params<op::GroupedGemmParams>(call.c->params));
}

std::string obstacle(const Call& call) {
  return product_obstacle(*call.c->mode, products_of(call).front());
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const std::vector<op::GemmParams> products = products_of(call);
  return {"own FP32 FMA kernel for all groups, sequential k",
          {{"tile", "64x64"}, {"order", "k ascending, one fma chain per output"}},
          products.size() * sizeof(GemmLaunch),
          [&device, products](std::span<const PortMemory> ports, std::byte* workspace) {
            device.use();
            const std::vector<GroupPorts> groups = groups_of(ports, products.size());
            std::vector<GemmLaunch> launches;
            for (std::size_t i = 0; i < products.size(); ++i) {
              if (products[i].in_place) {
                cuda_support::copy_addend(groups[i].memory(), device.stream());
              }
              launches.push_back(gemm_launch(products[i], groups[i].memory()));
            }
            device.memory().upload(workspace, std::as_bytes(std::span(launches)));
            const auto* on_device = reinterpret_cast<const GemmLaunch*>(workspace);
            return device.timed([&] {
              cuda_support::check(launch_grouped_gemm(launches, on_device, device.stream()),
                                  "te-numcheck's grouped gemm kernel");
            });
          }};
}

}  // namespace

// Every group as the kernel of `gemm` computes it, in one launch.
const Binding& grouped_gemm() {
  static const CudaBinding binding{{"cuda", "grouped_gemm", kArithmetic}, &obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
