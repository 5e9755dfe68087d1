#include "op/swizzle_scales.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda/swizzle_scales_kernel.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::SwizzleScalesParams>(call.c->params);
  return {"own kernel", {{"order", "bytes moved"}}, 0, [&device, p](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            const SwizzleScalesLaunch launch{.scales = static_cast<const std::uint8_t*>(address_of(ports, "scales")),
                                             .swizzled = static_cast<std::uint8_t*>(address_of(ports, "swizzled")),
                                             .lines = p.lines(),
                                             .blocks = p.blocks(),
                                             .lines_are_inner = p.lines_are_inner()};
            return device.timed([&] {
              cuda_support::check(launch_swizzle_scales(launch, device.stream()), "te-numcheck's swizzle of scales");
            });
          }};
}

}  // namespace

const Binding& swizzle_scales() {
  static const CudaBinding binding{{"cuda", "swizzle_scales"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
