#include "op/attention_dropout.hpp"

#include "kernels/cuda/attention_dropout_kernel.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

std::string no_obstacle(const Call&) {
  return {};
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  const auto p = op::from_params<op::AttentionDropoutParams>(call.c->params);
  return {"own kernel",
          {{"order", "Philox4x32-10, one random word per weight"}},
          0,
          [&device, p](std::span<const PortMemory> ports, std::byte*) {
            device.use();
            return device.timed([&] {
              const DropoutMaskLaunch launch = {.elements = p.batches * p.heads * p.sq * p.sk,
                                                .dropout = p.dropout,
                                                .seed = static_cast<std::uint64_t>(p.rng_seed),
                                                .mask = tensor_of(ports, "dropout_mask")};
              cuda_support::check(launch_dropout_mask(launch, device.stream()),
                                  "te-numcheck's kernel for dropout masks");
            });
          }};
}

}  // namespace

const Binding& attention_dropout() {
  static const CudaBinding binding{{"cuda", "attention_dropout"}, &no_obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
