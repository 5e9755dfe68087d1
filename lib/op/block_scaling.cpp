#include "op/block_scaling.hpp"

#include <string>

#include "core/error.hpp"
#include "op/mxfp8.hpp"
#include "op/nvfp4.hpp"

namespace numcheck::op {
namespace {

constexpr std::int64_t kBlock = 128;
constexpr std::int64_t kGemmPitch = 4;

}  // namespace

QuantizeRecipe quantize_recipe(std::string_view name) {
  if (name == "tensor") {
    return QuantizeRecipe::tensor;
  }
  if (name == "block_1x128") {
    return QuantizeRecipe::block_1x128;
  }
  if (name == "block_128x128") {
    return QuantizeRecipe::block_128x128;
  }
  if (name == "mxfp8") {
    return QuantizeRecipe::mxfp8;
  }
  if (name == "nvfp4") {
    return QuantizeRecipe::nvfp4;
  }
  throw core::InternalError("no recipe is named " + std::string(name));
}

BlockLayout rowwise_blocks(QuantizeRecipe recipe, bool compact, std::int64_t rows, std::int64_t cols) {
  BlockLayout layout{.codes = "q", .scales = "scale_inv", .rows = rows, .cols = cols};
  layout.pitch = compact ? 1 : kGemmPitch;
  if (recipe == QuantizeRecipe::mxfp8) {
    layout.block_cols = kMxfp8Block;
    layout.scale_format = core::Dtype::e8m0;
    return layout;
  }
  if (recipe == QuantizeRecipe::nvfp4) {
    layout.block_cols = kNvfp4Block;
    layout.scale_format = core::Dtype::fp8_e4m3;
    return layout;
  }
  layout.block_cols = kBlock;
  layout.block_rows = recipe == QuantizeRecipe::block_128x128 ? kBlock : 1;
  layout.scales_transposed = recipe == QuantizeRecipe::block_1x128 && !compact;
  return layout;
}

BlockLayout columnwise_blocks(QuantizeRecipe recipe, bool compact, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kMxfp8Pitch = 128;
  const bool turned = recipe != QuantizeRecipe::mxfp8 && !compact;
  BlockLayout layout{.codes = turned ? "q_t" : "q_columnwise",
                     .scales = turned ? "scale_inv_t" : "scale_inv_columnwise",
                     .rows = rows,
                     .cols = cols,
                     .codes_transposed = turned};
  if (recipe == QuantizeRecipe::mxfp8) {
    layout.block_rows = kMxfp8Block;
    layout.pitch = kMxfp8Pitch;
    layout.scale_format = core::Dtype::e8m0;
    return layout;
  }
  layout.block_rows = kBlock;
  layout.pitch = compact ? 1 : kGemmPitch;
  if (recipe == QuantizeRecipe::nvfp4) {
    layout.block_rows = kNvfp4Block;
    layout.scales_transposed = true;
    layout.scale_format = core::Dtype::fp8_e4m3;
  }
  if (recipe == QuantizeRecipe::block_128x128) {
    layout.block_cols = kBlock;
    layout.scales_transposed = true;
  }
  return layout;
}

Port scale_port(const BlockLayout& layout, Role role) {
  const bool turned = layout.scales_transposed;
  const auto doc = [&layout]() -> std::string_view {
    switch (layout.scale_format) {
      case core::Dtype::e8m0:
        return "powers of two, value = code * scale_inv";
      case core::Dtype::fp8_e4m3:
        return "of every block: value = code * scale_inv * global_amax / 2688";
      default:
        return "of every block: value = code * scale_inv";
    }
  };
  Port port = dense_port(layout.scales, role, layout.scale_format, turned ? layout.across() : layout.down(),
                         turned ? layout.down() : layout.across(), doc());
  port.ld = (port.cols + layout.pitch - 1) / layout.pitch * layout.pitch;
  port.batch_stride = port.rows * port.ld;
  return port;
}

}  // namespace numcheck::op
