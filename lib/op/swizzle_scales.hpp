// The order in which tensor cores read scales of MXFP8 and NVFP4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `swizzle_scales`: bytes moved, of the scales of a matrix [rows, cols] of codes. A line is a row of it, or a column
/// with layout columnwise; block i of line l is 32 (mxfp8) or 16 (nvfp4) codes along the line, and has the byte s(l, i). Lines are
/// padded to a multiple of 128 and blocks to one of 4, with zeros, and 128 x 4 scales are a tile of 512 bytes:
///
///   swizzled[tile][byte] = s(l, i)
///   tile = floor(l / 128) T + floor(i / 4)                 T = ceil(blocks / 4): tiles of 128 lines, one after another
///   byte = 16 (l mod 32) + 4 floor((l mod 128) / 32) + i mod 4
///
/// Ports: scales, as `quantize` leaves them, without padding: [rows, blocks], and column-wise [blocks, cols] with mxfp8 and
/// [cols, blocks] with nvfp4, whose column-wise codes are transposed; swizzled [tiles, 512]. Each draw of scales becomes a byte that
/// follows from its bits and its place. What is not written of `swizzled` is poison: multiplying by padding that is NaN is a known way to
/// lose a product.
/// Source: cuBLAS manual, "1D block scaling factors layout"; TransformerEngine swizzle.h, nvte_swizzle_scaling_factors,
/// common/swizzle/swizzle.cu.
struct SwizzleScalesParams {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string recipe = "mxfp8";    ///< mxfp8 | nvfp4
  std::string layout = "rowwise";  ///< rowwise | columnwise

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 24;
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "rows of the codes"});
    v.integer("cols", "c", cols, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "columns of the codes"});
    v.choice("recipe", "rec", recipe, {"mxfp8", "nvfp4"}, "whether 32 or 16 codes share a scale");
    v.choice("layout", "lay", layout, {"rowwise", "columnwise"},
             "whether the codes that share a scale lie in a row or in a column");
  }

  [[nodiscard]] bool is_columnwise() const noexcept { return layout == "columnwise"; }
  /// Codes that share a scale.
  [[nodiscard]] std::int64_t block() const noexcept { return recipe == "nvfp4" ? 16 : 32; }
  [[nodiscard]] std::int64_t lines() const noexcept { return is_columnwise() ? cols : rows; }
  /// Of a line. Precondition of what follows: lines are whole blocks.
  [[nodiscard]] std::int64_t blocks() const noexcept { return (is_columnwise() ? rows : cols) / block(); }
  /// Whether neighbouring scales in memory belong to neighbouring lines.
  [[nodiscard]] bool lines_are_inner() const noexcept { return is_columnwise() && recipe == "mxfp8"; }
  [[nodiscard]] std::int64_t tiles_across() const noexcept { return (blocks() + kTileBlocks - 1) / kTileBlocks; }
  [[nodiscard]] std::int64_t tiles() const noexcept { return (lines() + kTileLines - 1) / kTileLines * tiles_across(); }

  static constexpr std::int64_t kTileLines = 128, kTileBlocks = 4, kTileBytes = kTileLines * kTileBlocks;
};

/// The descriptor of `swizzle_scales`.
[[nodiscard]] const Op& swizzle_scales();

}  // namespace numcheck::op
