#include "op/amax.hpp"

#include <memory>

#include "core/dtype.hpp"
#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

/// Numbers of the codes that this op does not make: a scale of its own and scale_inv.
constexpr std::size_t kNumbers = 2 * kAlignment;

std::string obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<op::AmaxParams>(call.c->params);
  if (std::string lacks = context.library.lacks({kComputeAmax.name}); !lacks.empty() || !p.has_scale()) {
    return lacks;
  }
  return context.library.lacks(
      {kComputeScale.name, kCreateQuantizeConfig.name, kDestroyQuantizeConfig.name, kSetQuantizeConfig.name});
}

/// The functions write amax and scale of a tensor of codes, and accept no other. Its codes and its scale_inv stay as they are.
Tensor& codes(Operands& o, const op::AmaxParams& p) {
  const core::Dtype format = core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3);
  Tensor& tensor = o.tensor(o.extra() + kNumbers, data_type(format), {p.rows, p.cols});
  tensor.set_scalar(kAmax, o.data("amax"));
  tensor.set_scalar(kScale, p.has_scale() ? o.data("scale") : o.extra());
  tensor.set_scalar(kRowwiseScaleInv, o.extra() + kAlignment);
  return tensor;
}

Enqueue prepare(Operands& o, const op::AmaxParams& p) {
  Handle x = o.tensor(o.data("x"), data_type(o.port("x").dtype), {p.rows, p.cols}).handle();
  Handle q = codes(o, p).handle();
  if (!p.has_scale()) {
    return [=, &o](Handle) { o.context().library.call(kComputeAmax, x, q, o.stream()); };
  }
  const auto config = std::make_shared<AttributeObject>(o.context().library, kQuantizeConfig);
  config->set(kQuantizePowerOfTwo, p.power_of_two);
  config->set(kQuantizeEpsilon, static_cast<float>(p.epsilon));
  return [=, &o](Handle) {
    o.context().library.call(kComputeAmax, x, q, o.stream());
    o.context().library.call(kComputeScale, q, config->handle(), o.stream());
  };
}

Algorithm algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::AmaxParams>(call.c->params);
  const std::size_t code_bytes = static_cast<std::size_t>(p.rows * p.cols);
  return single_call(
      context, kComputeAmax.name, [p](Operands& o) { return prepare(o, p); }, kNumbers + aligned(code_bytes));
}

}  // namespace

// nvte_compute_amax, then nvte_compute_scale_from_amax if the case has a scale, as frameworks call them before they cast
// with current scaling: the same signatures in 2.9 to 2.20. Unlike others, the first accepts empty tensors.
const Binding& amax() {
  static const TeBinding binding{{"transformer_engine", "amax"}, &obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
