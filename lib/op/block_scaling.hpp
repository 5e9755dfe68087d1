// Recipes of FP8 casts: which elements share a scale, and how codes and scales are stored.
//
//   recipe          elements per scale    scales   codes, column-wise   scales, as matrix products read them
//   tensor          all                   FP32     transposed           one number
//   block_1x128     128 of a row          FP32                          [ceil(cols / 128), rows to 4]
//                   128 of a column                transposed           [ceil(rows / 128), cols to 4]
//   block_128x128   128 x 128             FP32                          [ceil(rows / 128), ceil(cols / 128) to 4]
//                                                  transposed           [ceil(cols / 128), ceil(rows / 128) to 4]
//   mxfp8           32 of a row           E8M0                          [rows, ceil(cols / 32) to 4]
//                   32 of a column                 as x lies            [ceil(rows / 32), cols to 128]
//   nvfp4           16 of a row           E4M3                          [rows, ceil(cols / 16) to 4]
//                   16 of a column                 transposed           [cols, ceil(rows / 16) to 4]
//
// "to 4": rows of scales are that many elements apart, and the padding in between is not written. Compact scales, of
// block_1x128, are [rows, ceil(cols / 128)] and [ceil(rows / 128), cols] without padding, and its column-wise codes are
// not transposed. Of MXFP8 and NVFP4 scales TransformerEngine also pads the number of rows, to 128 or 4; no element of x has
// those, and the ports end before them. NVFP4 has a number for the tensor, too, and two codes in a byte: op/nvfp4.hpp.
// Source: TransformerEngine common/transpose/quantize_transpose_{vector,square}_blockwise.cu, which leave the padding as it is,
// and common/transformer_engine.cpp, CheckScaleTensorShape.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "op/op.hpp"

namespace numcheck::op {

enum class QuantizeRecipe : std::uint8_t { tensor, block_1x128, block_128x128, mxfp8, nvfp4 };

/// Throws core::InternalError for a name that plans do not accept.
[[nodiscard]] QuantizeRecipe quantize_recipe(std::string_view name);

/// Elements between the scales of neighbouring blocks of x.
struct ScaleSteps {
  std::int64_t down = 0;
  std::int64_t across = 0;
};

/// One layout of block-scaled codes of x [rows, cols], and its scales.
struct BlockLayout {
  std::string_view codes;   ///< name of their port
  std::string_view scales;  ///< name of their port
  std::int64_t rows = 0;    ///< of x
  std::int64_t cols = 0;
  std::int64_t block_rows = 1;  ///< elements of x that share a scale; fewer at the edges
  std::int64_t block_cols = 1;
  bool codes_transposed = false;   ///< stored as [cols, rows]
  bool scales_transposed = false;  ///< stored as [across, down]
  std::int64_t pitch = 1;          ///< rows of scales begin at multiples of this many elements
  core::Dtype scale_format = core::Dtype::fp32;

  /// Blocks along the rows' and along the columns' index of x.
  [[nodiscard]] std::int64_t down() const noexcept { return (rows + block_rows - 1) / block_rows; }
  [[nodiscard]] std::int64_t across() const noexcept { return (cols + block_cols - 1) / block_cols; }
  /// Where rows of scales are `ld` elements apart.
  [[nodiscard]] ScaleSteps steps(std::int64_t ld) const noexcept {
    return scales_transposed ? ScaleSteps{1, ld} : ScaleSteps{ld, 1};
  }
  /// Where they follow each other.
  [[nodiscard]] ScaleSteps dense_steps() const noexcept { return steps(scales_transposed ? down() : across()); }
};

/// The scales and the codes of both layouts, whichever of them a case has. Precondition: recipe is not tensor.
[[nodiscard]] BlockLayout rowwise_blocks(QuantizeRecipe recipe, bool compact, std::int64_t rows, std::int64_t cols);
[[nodiscard]] BlockLayout columnwise_blocks(QuantizeRecipe recipe, bool compact, std::int64_t rows, std::int64_t cols);

/// The port of the scales, in that role.
[[nodiscard]] Port scale_port(const BlockLayout& layout, Role role);

}  // namespace numcheck::op
