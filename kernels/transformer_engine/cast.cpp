#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/block_cast.hpp"
#include "kernels/transformer_engine/launch.hpp"
#include "op/quantize.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

std::string obstacle(const Context& context, const Call& call, std::string_view function) {
  if (std::string layout = layout_obstacle(call); !layout.empty()) {
    return layout;
  }
  return context.library.lacks({function});
}

Tensor& plain(Operands& o, std::string_view port, std::int64_t rows, std::int64_t cols) {
  return o.tensor(o.data(port), data_type(o.port(port).dtype), {rows, cols});
}

bool has_blocks(const std::string& recipe) {
  return op::quantize_recipe(recipe) != op::QuantizeRecipe::tensor;
}

std::string quantize_obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<op::QuantizeParams>(call.c->params);
  return has_blocks(p.recipe) ? block_quantize_obstacle(context, call, p) : obstacle(context, call, kQuantize.name);
}

std::string dequantize_obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<op::DequantizeParams>(call.c->params);
  return has_blocks(p.recipe) ? block_dequantize_obstacle(context, call, p) : obstacle(context, call, kDequantize.name);
}

Enqueue prepare_quantize(Operands& o, const op::QuantizeParams& p) {
  Handle x = plain(o, "x", p.rows, p.cols).handle();
  Tensor& codes = o.none();
  codes.set_scalar(kScale, o.data("scale"));
  codes.set_scalar(kAmax, o.data("amax"));
  if (o.has("q")) {
    codes.set(kRowwiseData, o.data("q"), data_type(o.port("q").dtype), {p.rows, p.cols});
    codes.set_scalar(kRowwiseScaleInv, o.data("scale_inv"));
  }
  if (o.has("q_t")) {
    codes.set(kColumnwiseData, o.data("q_t"), data_type(o.port("q_t").dtype), {p.cols, p.rows});
    codes.set_scalar(kColumnwiseScaleInv, o.data("scale_inv"));
  }
  return [=, &o, q = codes.handle()](Handle) { o.context().library.call(kQuantize, x, q, o.stream()); };
}

Algorithm quantize_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::QuantizeParams>(call.c->params);
  if (has_blocks(p.recipe)) {
    return block_quantize_algorithm(context, call, p);
  }
  return single_call(context, kQuantize.name, [p](Operands& o) { return prepare_quantize(o, p); });
}

Algorithm dequantize_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::DequantizeParams>(call.c->params);
  if (has_blocks(p.recipe)) {
    return block_dequantize_algorithm(context, p);
  }
  return single_call(context, kDequantize.name, [p](Operands& o) -> Enqueue {
    Handle q = o.input("q", {p.rows, p.cols}).handle(), y = plain(o, "y", p.rows, p.cols).handle();
    return [=, &o](Handle) { o.context().library.call(kDequantize, q, y, o.stream()); };
  });
}

Algorithm transpose_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::TransposeParams>(call.c->params);
  return single_call(context, kTranspose.name, [p](Operands& o) -> Enqueue {
    Handle x = plain(o, "x", p.rows, p.cols).handle(), y = plain(o, "y", p.cols, p.rows).handle();
    return [=, &o](Handle) { o.context().library.call(kTranspose, x, y, o.stream()); };
  });
}

}  // namespace

// nvte_quantize with a per-tensor scale (rowwise, or both layouts in one call), nvte_quantize_v2 with scales of blocks,
// nvte_dequantize, nvte_transpose.
const Binding& quantize() {
  static const TeBinding binding{{"transformer_engine", "quantize"}, &quantize_obstacle, &quantize_algorithm};
  return binding;
}

const Binding& dequantize() {
  static const TeBinding binding{{"transformer_engine", "dequantize"}, &dequantize_obstacle, &dequantize_algorithm};
  return binding;
}

const Binding& transpose() {
  static const TeBinding binding{
      {"transformer_engine", "transpose"},
      [](const Context& context, const Call& call) { return obstacle(context, call, kTranspose.name); },
      &transpose_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
