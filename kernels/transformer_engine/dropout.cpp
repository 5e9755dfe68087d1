#include "op/dropout.hpp"

#include <array>

#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

/// Seed and offset of the generator.
using RngState = std::array<std::int64_t, 2>;

std::string obstacle(const Context& context, const Call& call, std::string_view function) {
  if (std::string layout = layout_obstacle(call); !layout.empty()) {
    return layout;
  }
  if (call.c->mode->first != core::Dtype::bf16 && call.c->mode->first != core::Dtype::fp16) {
    return "TransformerEngine's dropout supports BF16 and FP16 only";
  }
  return context.library.lacks({function});
}

Algorithm fwd_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::DropoutParams>(call.c->params);
  return single_call(
      context, kDropoutFwd.name,
      [p](Operands& o) -> Enqueue {
        const RngState state = {p.rng_seed, 0};
        o.context().device->memory().upload(o.extra(), std::as_bytes(std::span(state)));
        Handle rng = o.tensor(o.extra(), kInt64, {static_cast<std::int64_t>(state.size())}).handle();
        Handle x = o.input("x", {p.elements}).handle(), y = o.input("y", {p.elements}).handle();
        Handle mask = o.input("mask", {p.elements / 8}).handle();
        return [=, &o](Handle) {
          o.context().library.call(kDropoutFwd, x, y, mask, rng, static_cast<float>(p.p), o.stream());
        };
      },
      sizeof(RngState));
}

Algorithm bwd_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::DropoutParams>(call.c->params);
  return single_call(context, kDropoutBwd.name, [p](Operands& o) -> Enqueue {
    Handle dy = o.input("dy", {p.elements}).handle(), dx = o.input("dx", {p.elements}).handle();
    Handle mask = o.input("mask", {p.elements / 8}).handle();
    return
        [=, &o](Handle) { o.context().library.call(kDropoutBwd, dy, mask, dx, static_cast<float>(p.p), o.stream()); };
  });
}

}  // namespace

// nvte_dropout_fwd, with the generator's state {rng_seed, 0}, and nvte_dropout_bwd: BF16 and FP16 tensors.
const Binding& dropout_fwd() {
  static const TeBinding binding{
      {"transformer_engine", "dropout_fwd"},
      [](const Context& context, const Call& call) { return obstacle(context, call, kDropoutFwd.name); },
      &fwd_algorithm};
  return binding;
}

const Binding& dropout_bwd() {
  static const TeBinding binding{
      {"transformer_engine", "dropout_bwd"},
      [](const Context& context, const Call& call) { return obstacle(context, call, kDropoutBwd.name); },
      &bwd_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
