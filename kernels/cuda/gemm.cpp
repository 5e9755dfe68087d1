#include "op/gemm.hpp"

#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/gemm_kernel.hpp"
#include "kernels/cuda/gemm_launch.hpp"
#include "kernels/cuda_support/addend.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

std::string gemm_obstacle(const Call& call) {
  return product_obstacle(*call.c->mode, op::from_params<op::GemmParams>(call.c->params));
}

Algorithm gemm_algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto params = op::from_params<op::GemmParams>(call.c->params);
  return {"own FP32 FMA kernel, sequential k",
          {{"tile", "64x64"}, {"order", "k ascending, one fma chain per output"}},
          0,
          [&device, params](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            if (params.in_place) {
              cuda_support::copy_addend(ports, device.stream());
            }
            return device.timed([&] {
              cuda_support::check(launch_gemm(gemm_launch(params, ports), device.stream()),
                                  "te-numcheck's gemm kernel");
            });
          }};
}

}  // namespace

// FP8 codes are converted to FP32, so that every device multiplies them, in all layouts.
const Binding& gemm() {
  static const CudaBinding binding{{"cuda", "gemm", kArithmetic}, &gemm_obstacle, &gemm_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
