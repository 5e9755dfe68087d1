#include "op/softmax_fwd.hpp"

#include <limits>

#include "core/codec.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cuda/port_access.hpp"
#include "kernels/cuda/softmax_shape.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda {
namespace {

SoftmaxForward rules_of(const Call& call) {
  const auto p = op::from_params<op::SoftmaxFwdParams>(call.c->params);
  const auto scale = static_cast<float>(p.scale);
  const bool replaces = p.masked_value == "te";
  const bool bottom_right = p.mask == "causal_bottom_right";
  SoftmaxForward rules;
  rules.shape = softmax_shape(p);
  rules.heads = p.heads;
  rules.scale = p.scale_rounding == "ideal"
                    ? scale
                    : static_cast<float>(core::round_to(static_cast<double>(scale), call.c->mode->first));
  rules.masked_score = replaces ? static_cast<float>(op::kMaskedScore) : -std::numeric_limits<float>::infinity();
  rules.masked_row_is_zero = p.mask == "arbitrary" || (bottom_right && !replaces);
  rules.lanes = bottom_right && replaces ? op::softmax_lanes(p.sk) : 0;
  return rules;
}

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  return {"own kernel",
          {{"order", "each thread in order of the columns, then a tree"}},
          0,
          [&device, rules = rules_of(call)](std::span<const PortMemory> ports, std::byte*) {
            SoftmaxForward launch = rules;
            launch.x = tensor_of(ports, "x");
            launch.y = tensor_of(ports, "y");
            launch.mask = static_cast<const std::uint8_t*>(address_of(ports, "mask"));
            device.use();
            return device.timed([&] {
              cuda_support::check(launch_softmax_fwd(launch, device.stream()), "te-numcheck's softmax kernel");
            });
          }};
}

}  // namespace

const Binding& softmax_fwd() {
  static const CudaBinding binding{{"cuda", "softmax_fwd"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
