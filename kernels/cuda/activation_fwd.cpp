#include "kernels/cuda/activation_fwd.hpp"

#include "kernels/cuda/activation_launch.hpp"
#include "kernels/cuda/binding.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr ActivationOutput kOutput{"y", "y_scale", "y_amax"};

Algorithm algorithm(CudaDevice& device, const Call& call) {
  return activation_algorithm(device, call, kOutput, &launch_activation_fwd);
}

}  // namespace

const Binding& activation_fwd() {
  static const CudaBinding binding{{"cuda", "activation_fwd"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
