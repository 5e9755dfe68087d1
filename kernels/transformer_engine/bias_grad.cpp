#include "op/bias_grad.hpp"

#include <algorithm>
#include <array>

#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"
#include "kernels/transformer_engine/mxfp8.hpp"
#include "op/activation_params.hpp"
#include "op/output_format.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

struct Row {
  std::string_view fused;
  QuantizeDbiasDact function;
};

constexpr std::array kFused = {
    Row{"gelu", kQuantizeDbiasDgelu},   Row{"silu", kQuantizeDbiasDsilu},   Row{"relu", kQuantizeDbiasDrelu},
    Row{"qgelu", kQuantizeDbiasDqgelu}, Row{"srelu", kQuantizeDbiasDsrelu},
};

const Row* row_of(std::string_view fused) {
  const auto* found = std::ranges::find(kFused, fused, &Row::fused);
  return found == kFused.end() ? nullptr : found;
}

std::string_view function_of(const op::BiasGradParams& p) {
  const Row* row = row_of(p.fused);
  return row == nullptr ? kQuantizeDbias.name : row->function.name;
}

std::string obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<op::BiasGradParams>(call.c->params);
  if (std::string layout = layout_obstacle(call); !layout.empty()) {
    return layout;
  }
  if (std::string mxfp8 = mxfp8_obstacle(context, call); !mxfp8.empty()) {
    return mxfp8;
  }
  if (p.fused != "none" && row_of(p.fused) == nullptr) {
    return "TransformerEngine has no bias gradient fused with " + p.fused;
  }
  return context.library.lacks({function_of(p)});
}

std::size_t elements(const op::BiasGradParams& p) {
  return static_cast<std::size_t>(p.rows) * static_cast<std::size_t>(p.hidden);
}

/// The sums alone; nothing reads the E4M3 codes and their transpose.
Enqueue sums(Operands& o, const op::BiasGradParams& p) {
  Handle dy = o.input("dy", {p.rows, p.hidden}).handle();
  Handle dbias = o.input("dbias", {p.hidden}).handle();
  Tensor& codes = o.tensor(o.extra(), kFloat8E4m3, {p.rows, p.hidden});
  std::byte* unread = o.extra() - sizeof(float);
  codes.set_scalar(kRowwiseScaleInv, unread);
  codes.set(kColumnwiseData, o.extra() + aligned(elements(p)), kFloat8E4m3, {p.hidden, p.rows});
  codes.set_scalar(kColumnwiseScaleInv, unread);
  return [=, &o, output = codes.handle()](Handle workspace) {
    o.context().library.call(kQuantizeDbias, dy, output, dbias, workspace, o.stream());
  };
}

/// The sums and dx, with its transpose, which goes to the workspace if nothing reads it.
Enqueue sums_and_cast(Operands& o, const op::BiasGradParams& p) {
  const Row* row = row_of(p.fused);
  Handle dy = o.input("dy", {p.rows, p.hidden}).handle();
  Handle x = row == nullptr ? nullptr : o.input("x", {p.rows, p.hidden}).handle();
  Handle dbias = o.input("dbias", {p.hidden}).handle();
  const CastOutput dx(o, p.output, op::kMxfp8Dx, {p.rows, p.hidden});
  if (dx.tensor() != nullptr) {
    std::byte* transpose = o.has("dx_t") ? o.data("dx_t") : o.extra();
    o.add_transpose(*dx.tensor(), data_type(o.port("dx").dtype), transpose, p.hidden, p.rows);
  }
  return [=, &o](Handle workspace) {
    if (row == nullptr) {
      o.context().library.call(kQuantizeDbias, dy, dx.handle(), dbias, workspace, o.stream());
    } else {
      o.context().library.call(row->function, dy, x, dx.handle(), dbias, workspace, o.stream());
    }
    dx.finish(o.stream());
  };
}

std::size_t extra_bytes(const Call& call, const op::BiasGradParams& p) {
  if (!p.has_dx()) {
    return 2 * aligned(elements(p));
  }
  return op::is_mxfp8(p.output) ? mxfp8_scratch(call, op::kMxfp8Dx)
                                : elements(p) * bytes_of(data_type(op::output_dtype(p.output, *call.c->mode)));
}

Algorithm algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::BiasGradParams>(call.c->params);
  const Prepare prepare = [p](Operands& o) { return p.has_dx() ? sums_and_cast(o, p) : sums(o, p); };
  return two_calls(context, call, function_of(p), prepare, extra_bytes(call, p));
}

}  // namespace

// The functions quantise while they sum: where no dx is asked for, the codes go into the workspace. Below sm_100 they also
// need a transposed output, which goes there too.
const Binding& bias_grad() {
  static const TeBinding binding{{"transformer_engine", "bias_grad"}, &obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
