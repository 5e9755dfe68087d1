#include "op/swizzle_scales.hpp"

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda_support/check.hpp"
#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

using P = op::SwizzleScalesParams;

std::string obstacle(const Context& context, const Call& call) {
  if (std::string layout = layout_obstacle(call); !layout.empty()) {
    return layout;
  }
  return context.library.lacks({kSwizzleScales.name});
}

/// The padded scales that the library reads, as many as the swizzled ones. What the padding holds before, all ones, is NaN in both
/// formats: the library clears it.
class PaddedScales {
 public:
  PaddedScales(Operands& o, const P& p)
      : o_(o), memory_(o.extra()), bytes_(static_cast<std::size_t>(p.tiles() * P::kTileBytes)) {
    const std::int64_t blocks = p.tiles_across() * P::kTileBlocks;
    lines_ = p.tiles() / p.tiles_across() * P::kTileLines;
    rows_ = p.lines_are_inner() ? blocks : lines_;
    cols_ = p.lines_are_inner() ? lines_ : blocks;
  }

  /// A tensor with these scales, or with those in another place, and codes that nobody reads.
  Handle tensor(const P& p, void* scales, bool is_swizzled) {
    const bool is_fp4 = p.recipe == "nvfp4", turned = is_fp4 && p.is_columnwise();
    Tensor& tensor = o_.none(is_fp4 ? kNvfp4 : kMxfp8);
    tensor.set(p.is_columnwise() ? kColumnwiseData : kRowwiseData, memory_, is_fp4 ? kFloat4E2m1 : kFloat8E4m3,
               turned ? Extents{p.cols, p.rows} : Extents{p.rows, p.cols});
    tensor.set(p.is_columnwise() ? kColumnwiseScaleInv : kRowwiseScaleInv, scales, is_fp4 ? kFloat8E4m3 : kFloat8E8m0,
               {rows_, cols_});
    if (is_swizzled) {
      tensor.set_swizzled_scales();
    }
    return tensor.handle();
  }
  [[nodiscard]] std::byte* memory() const noexcept { return memory_; }

  void fill() const {
    constexpr int kAllOnes = 0xFF;
    const op::Port& port = o_.port("scales");
    const auto width = static_cast<std::size_t>(port.cols), height = static_cast<std::size_t>(port.rows);
    cuda_support::check(cudaMemsetAsync(memory_, kAllOnes, bytes_, o_.stream()), "cudaMemsetAsync");
    cuda_support::check(cudaMemcpy2DAsync(memory_, static_cast<std::size_t>(cols_), o_.data("scales"), width, width,
                                          height, cudaMemcpyDeviceToDevice, o_.stream()),
                        "cudaMemcpy2DAsync");
  }

 private:
  Operands& o_;
  std::byte* memory_;
  std::size_t bytes_;
  std::int64_t lines_ = 0, rows_ = 0, cols_ = 0;
};

Enqueue prepare(Operands& o, const P& p) {
  PaddedScales padded(o, p);
  Handle from = padded.tensor(p, padded.memory(), false);
  Handle to = padded.tensor(p, o.data("swizzled"), true);
  return [=, &o](Handle) {
    padded.fill();
    o.context().library.call(kSwizzleScales, from, to, o.stream());
  };
}

Algorithm algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<P>(call.c->params);
  return single_call(
      context, kSwizzleScales.name, [p](Operands& o) { return prepare(o, p); },
      aligned(static_cast<std::size_t>(p.tiles() * P::kTileBytes)));
}

}  // namespace

// nvte_swizzle_scaling_factors: the same signature since 2.0; from 2.12 on the output says that its scales are swizzled.
const Binding& swizzle_scales() {
  static const TeBinding binding{{"transformer_engine", "swizzle_scales"}, &obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
