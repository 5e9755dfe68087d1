#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"
#include "kernels/transformer_engine/mxfp8.hpp"
#include "op/activation_params.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

struct Row {
  std::string_view kind;
  Unary forward;
  Binary backward;
};

constexpr std::array kFunctions = {
    Row{"gelu", kGelu, kDgelu},       Row{"silu", kSilu, kDsilu},    Row{"relu", kRelu, kDrelu},
    Row{"qgelu", kQgelu, kDqgelu},    Row{"srelu", kSrelu, kDsrelu}, Row{"geglu", kGeglu, kDgeglu},
    Row{"swiglu", kSwiglu, kDswiglu}, Row{"reglu", kReglu, kDreglu}, Row{"qgeglu", kQgeglu, kDqgeglu},
    Row{"sreglu", kSreglu, kDsreglu},
};

constexpr std::string_view kClamped = "clamped_swiglu";

const Row* row_of(std::string_view kind) {
  const auto* found = std::ranges::find(kFunctions, kind, &Row::kind);
  return found == kFunctions.end() ? nullptr : found;
}

/// The function that computes the case; empty if there is none.
std::string_view function_of(const op::ActivationParams& p, bool backward) {
  if (p.kind == kClamped) {
    if (p.offset == 1) {
      return backward ? kClampedDswiglu.name : kClampedSwiglu.name;
    }
    return backward ? kClampedDswigluV2.name : kClampedSwigluV2.name;
  }
  const Row* row = row_of(p.kind);
  return row == nullptr ? std::string_view() : backward ? row->backward.name : row->forward.name;
}

/// What the kernels of gated kinds require beyond that. Those with MXFP8 output and, from compute capability 10.0 on,
/// those for whole blocks of 32 elements are not the plain ones.
/// Source: TransformerEngine common/cast/dispatch/gated.cuh.
std::string gated_obstacle(const Context& context, const op::ActivationParams& p, bool backward) {
  constexpr int kFirst = 100;
  const op::ActivationKind& kind = op::activation_kind(p.kind);
  const bool whole = p.hidden % op::kMxfp8Block == 0;
  if (!kind.gated) {
    return {};
  }
  if (op::is_mxfp8(p.output) && !whole) {
    return fmt::format(
        "TransformerEngine's gated activations with an MXFP8 output need hidden in multiples of 32, not {}", p.hidden);
  }
  const bool other_kernel = op::is_mxfp8(p.output) || (context.info.sm >= kFirst && whole);
  if (backward && other_kernel && op::has_fast_sigmoid(kind) && p.sigmoid != "fast") {
    return "TransformerEngine computes this gradient with a fast exponential here: set sigmoid to fast";
  }
  return {};
}

std::string obstacle(const Context& context, const Call& call, bool backward) {
  const auto p = op::from_params<op::ActivationParams>(call.c->params);
  const std::string_view function = function_of(p, backward);
  if (function.empty()) {
    return "TransformerEngine has no " + p.kind + "; its gelu is the tanh form";
  }
  if (std::string layout = layout_obstacle(call); !layout.empty()) {
    return layout;
  }
  if (std::string mxfp8 = mxfp8_obstacle(context, call); !mxfp8.empty()) {
    return mxfp8;
  }
  if (std::string gated = gated_obstacle(context, p, backward); !gated.empty()) {
    return gated;
  }
  return context.library.lacks({function});
}

void call_forward(const Operands& o, const op::ActivationParams& p, Handle x, Handle y) {
  const auto limit = static_cast<float>(p.limit), alpha = static_cast<float>(p.alpha);
  if (p.kind != kClamped) {
    o.context().library.call(row_of(p.kind)->forward, x, y, o.stream());
  } else if (p.offset == 1) {
    o.context().library.call(kClampedSwiglu, x, y, limit, alpha, o.stream());
  } else {
    o.context().library.call(kClampedSwigluV2, x, y, limit, alpha, static_cast<float>(p.offset), o.stream());
  }
}

void call_backward(const Operands& o, const op::ActivationParams& p, Handle dy, Handle x, Handle dx) {
  const auto limit = static_cast<float>(p.limit), alpha = static_cast<float>(p.alpha);
  if (p.kind != kClamped) {
    o.context().library.call(row_of(p.kind)->backward, dy, x, dx, o.stream());
  } else if (p.offset == 1) {
    o.context().library.call(kClampedDswiglu, dy, x, dx, limit, alpha, o.stream());
  } else {
    o.context().library.call(kClampedDswigluV2, dy, x, dx, limit, alpha, static_cast<float>(p.offset), o.stream());
  }
}

Algorithm fwd_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::ActivationParams>(call.c->params);
  const Prepare prepare = [p](Operands& o) -> Enqueue {
    Handle x = o.input("x", {p.rows, op::input_columns(p)}).handle();
    const CastOutput y(o, p.output, op::kMxfp8Y, {p.rows, p.hidden});
    return [=, &o](Handle) {
      call_forward(o, p, x, y.handle());
      y.finish(o.stream());
    };
  };
  return single_call(context, function_of(p, false), prepare, mxfp8_scratch(call, op::kMxfp8Y));
}

Algorithm bwd_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::ActivationParams>(call.c->params);
  const Prepare prepare = [p](Operands& o) -> Enqueue {
    Handle dy = o.input("dy", {p.rows, p.hidden}).handle();
    Handle x = o.input("x", {p.rows, op::input_columns(p)}).handle();
    const CastOutput dx(o, p.output, op::kMxfp8Dx, {p.rows, op::input_columns(p)});
    return [=, &o](Handle) {
      call_backward(o, p, dy, x, dx.handle());
      dx.finish(o.stream());
    };
  };
  return single_call(context, function_of(p, true), prepare, mxfp8_scratch(call, op::kMxfp8Dx));
}

}  // namespace

// nvte_gelu, nvte_silu, ..., nvte_swiglu, ... and their gradients nvte_dgelu, ... There is no gelu_erf. clamped_swiglu
// with an offset other than 1 needs the functions that take one, which older versions lack.
const Binding& activation_fwd() {
  static const TeBinding binding{
      {"transformer_engine", "activation_fwd"},
      [](const Context& context, const Call& call) { return obstacle(context, call, false); },
      &fwd_algorithm};
  return binding;
}

const Binding& activation_bwd() {
  static const TeBinding binding{{"transformer_engine", "activation_bwd"},
                                 [](const Context& context, const Call& call) { return obstacle(context, call, true); },
                                 &bwd_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
