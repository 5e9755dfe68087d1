#include "kernels/cuda/activation_launch.hpp"
#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr ActivationOutput kOutput{"dx", "dx_scale", "dx_amax"};

Algorithm algorithm(cuda_support::CudaDevice& device, const Call& call) {
  return activation_algorithm(device, call, kOutput, &launch_activation_bwd);
}

}  // namespace

const Binding& activation_bwd() {
  static const CudaBinding binding{{"cuda", "activation_bwd"}, [](const Call&) { return std::string(); }, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
