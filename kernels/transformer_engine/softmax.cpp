#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"
#include "op/softmax_bwd.hpp"
#include "op/softmax_fwd.hpp"
#include "op/softmax_mask.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

using op::SoftmaxMask;

constexpr std::int64_t kMaxColumns = 16384;

/// Rows per block of 128 threads: a warp, or a part of one as wide as a short row, takes two rows of up to 128 columns
/// or one longer row.
std::int64_t rows_per_block(std::int64_t columns) {
  const auto lanes = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(columns)));
  return 128 / std::min<std::int64_t>(lanes, 32) * (lanes <= 128 ? 2 : 1);
}

/// Limits that the functions have in common.
template <class Params>
std::string shape_obstacle(const Params& p, const op::Mode& mode) {
  if (mode.first != core::Dtype::bf16 && mode.first != core::Dtype::fp16) {
    return "TransformerEngine's softmax supports BF16 and FP16 only";
  }
  if (p.sk > kMaxColumns) {
    return fmt::format("TransformerEngine's softmax supports rows of up to {} columns", kMaxColumns);
  }
  if (p.sk > 64 && p.sk % 4 != 0) {
    return "TransformerEngine's softmax reads rows of more than 64 columns four at a time: sk must be a multiple of 4";
  }
  const SoftmaxMask mask = op::softmax_mask(p.mask);
  if (mask == SoftmaxMask::causal && p.sq != p.sk) {
    return "TransformerEngine's causal softmax supports only square matrices: sq must equal sk";
  }
  const bool replaces = mask == SoftmaxMask::arbitrary || mask == SoftmaxMask::causal_bottom_right;
  if (replaces && p.masked_value != "te") {
    return "TransformerEngine replaces masked scores with -10000: set masked_value to te";
  }
  return {};
}

/// The forward functions refuse rows that do not fill their blocks; the backward functions of the first two leave the
/// rest unwritten, so the same rule applies to them.
template <class Params>
std::string block_obstacle(const Params& p, bool backward) {
  const std::int64_t rows = rows_per_block(p.sk);
  const std::int64_t matrices = p.batches * p.heads;
  switch (op::softmax_mask(p.mask)) {
    case SoftmaxMask::causal:
      return matrices % rows == 0 ? std::string()
                                  : fmt::format(
                                        "TransformerEngine's causal softmax of {} columns needs batches * heads "
                                        "in multiples of {}",
                                        p.sk, rows);
    case SoftmaxMask::causal_bottom_right:
      return {};
    case SoftmaxMask::none:
    case SoftmaxMask::arbitrary:
      break;
  }
  if (!backward && p.sq % rows != 0) {
    return fmt::format("TransformerEngine's softmax of {} columns needs sq in multiples of {}", p.sk, rows);
  }
  if (backward && matrices * p.sq % rows != 0) {
    return fmt::format(
        "TransformerEngine's softmax gradient of {} columns needs batches * heads * sq in multiples of {} and leaves "
        "other rows unwritten",
        p.sk, rows);
  }
  return {};
}

const SoftmaxForward& forward_of(SoftmaxMask mask) {
  return mask == SoftmaxMask::causal                ? kTriangularSoftmaxFwd
         : mask == SoftmaxMask::causal_bottom_right ? kAlignedCausalSoftmaxFwd
                                                    : kSoftmaxFwd;
}

std::string_view forward_name(SoftmaxMask mask) {
  return mask == SoftmaxMask::arbitrary ? kMaskedSoftmaxFwd.name : forward_of(mask).name;
}

const SoftmaxBackward& backward_of(SoftmaxMask mask) {
  switch (mask) {
    case SoftmaxMask::none:
      break;
    case SoftmaxMask::arbitrary:
      return kMaskedSoftmaxBwd;
    case SoftmaxMask::causal:
      return kTriangularSoftmaxBwd;
    case SoftmaxMask::causal_bottom_right:
      return kAlignedCausalSoftmaxBwd;
  }
  return kSoftmaxBwd;
}

/// The triangular functions take matrices, the others batches of heads.
template <class Params>
Handle scores(Operands& operands, const Params& p, std::string_view port) {
  return op::softmax_mask(p.mask) == SoftmaxMask::causal
             ? operands.input(port, {p.batches * p.heads, p.sq, p.sk}).handle()
             : operands.input(port, {p.batches, p.heads, p.sq, p.sk}).handle();
}

bool is_exact(double value, core::Dtype dtype) {
  return core::round_to(value, dtype) == value;
}

std::string fwd_obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<op::SoftmaxFwdParams>(call.c->params);
  if (p.scale_rounding == "ideal" && !is_exact(p.scale, call.c->mode->first)) {
    return "TransformerEngine rounds the forward scale to the tensor's format: set scale_rounding to as_implemented";
  }
  for (std::string obstacle : {layout_obstacle(call), shape_obstacle(p, *call.c->mode), block_obstacle(p, false)}) {
    if (!obstacle.empty()) {
      return obstacle;
    }
  }
  return context.library.lacks({forward_name(op::softmax_mask(p.mask))});
}

std::string bwd_obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<op::SoftmaxBwdParams>(call.c->params);
  for (std::string obstacle : {layout_obstacle(call), shape_obstacle(p, *call.c->mode), block_obstacle(p, true)}) {
    if (!obstacle.empty()) {
      return obstacle;
    }
  }
  return context.library.lacks({backward_of(op::softmax_mask(p.mask)).name});
}

Algorithm fwd_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::SoftmaxFwdParams>(call.c->params);
  const SoftmaxMask mask = op::softmax_mask(p.mask);
  return single_call(context, forward_name(mask), [p, mask](Operands& o) -> Enqueue {
    const auto scale = static_cast<float>(p.scale);
    Handle x = scores(o, p, "x"), y = scores(o, p, "y");
    if (mask != SoftmaxMask::arbitrary) {
      return [=, &o](Handle) { o.context().library.call(forward_of(mask), x, y, scale, o.stream()); };
    }
    Handle bytes = o.input("mask", {p.batches, 1, p.sq, p.sk}).handle();
    return [=, &o](Handle) { o.context().library.call(kMaskedSoftmaxFwd, x, bytes, y, scale, o.stream()); };
  });
}

Algorithm bwd_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::SoftmaxBwdParams>(call.c->params);
  const SoftmaxMask mask = op::softmax_mask(p.mask);
  return single_call(context, backward_of(mask).name, [p, mask](Operands& o) -> Enqueue {
    Handle dy = scores(o, p, "dy"), y = scores(o, p, "y"), dx = scores(o, p, "dx");
    return [=, &o](Handle) {
      o.context().library.call(backward_of(mask), dy, y, dx, static_cast<float>(p.scale), o.stream());
    };
  });
}

}  // namespace

// Masks none, arbitrary, causal and causal_bottom_right are nvte_scaled_softmax, _scaled_masked_softmax,
// _scaled_upper_triang_masked_softmax and _scaled_aligned_causal_masked_softmax. They support BF16 and FP16, replace
// masked scores with -10000, and round the forward scale to the tensor's format. Their kernels support rows of up to
// 16384 columns, which they read four at a time from 65 columns on, and process a fixed number of rows per block.
// Source: TransformerEngine common/fused_softmax.
const Binding& softmax_fwd() {
  static const TeBinding binding{{"transformer_engine", "softmax_fwd"}, &fwd_obstacle, &fwd_algorithm};
  return binding;
}

const Binding& softmax_bwd() {
  static const TeBinding binding{{"transformer_engine", "softmax_bwd"}, &bwd_obstacle, &bwd_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
