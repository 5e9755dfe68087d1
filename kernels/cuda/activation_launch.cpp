#include "kernels/cuda/activation_launch.hpp"

#include "core/error.hpp"
#include "kernels/cuda/port_access.hpp"

namespace numcheck::kernels::cuda {

Function function_of(op::Activation activation) {
  switch (activation) {
    case op::Activation::gelu:
      return Function::gelu;
    case op::Activation::gelu_erf:
      return Function::gelu_erf;
    case op::Activation::silu:
      return Function::silu;
    case op::Activation::relu:
      return Function::relu;
    case op::Activation::qgelu:
      return Function::qgelu;
    case op::Activation::srelu:
      return Function::srelu;
    case op::Activation::clamped:
      return Function::clamped;
  }
  throw core::InternalError("own kernels: no such activation");
}

ActivationLaunch activation_launch(const op::ActivationParams& params, std::span<const PortMemory> ports) {
  const op::ActivationKind& kind = op::activation_kind(params.kind);
  ActivationLaunch launch;
  launch.function = function_of(kind.function);
  launch.gated = kind.gated;
  launch.clamp = {static_cast<float>(params.limit), static_cast<float>(params.alpha),
                  static_cast<float>(params.offset)};
  launch.rows = params.rows;
  launch.hidden = params.hidden;
  launch.x = tensor_of(ports, "x");
  launch.dy = tensor_of(ports, "dy");
  return launch;
}

}  // namespace numcheck::kernels::cuda
