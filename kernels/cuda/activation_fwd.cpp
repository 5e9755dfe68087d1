#include "kernels/cuda/activation_launch.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr ActivationOutput kOutput{"y", "y_scale", "y_amax"};

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  return activation_algorithm(device, call, kOutput, &launch_activation_fwd);
}

}  // namespace

const Binding& activation_fwd() {
  static const CudaBinding binding{{"cuda", "activation_fwd"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
