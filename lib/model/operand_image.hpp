// From a matrix in memory to dense floats: decoding, layout, and the rounding that a library applies to operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/codec.hpp"
#include "core/dtype.hpp"

namespace numcheck::model {

/// A matrix in memory: element (r, c) is at data + (r * row_stride + c * column_stride) * storage bytes. A transposed
/// matrix has its strides exchanged.
struct MatrixView {
  const std::byte* data = nullptr;
  core::Dtype dtype = core::Dtype::fp32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 1;
  std::int64_t column_stride = 1;

  [[nodiscard]] MatrixView transposed() const noexcept {
    return {data, dtype, columns, rows, column_stride, row_stride};
  }
};

/// What a kernel does to operands before it multiplies them.
struct OperandConversion {
  core::Dtype dtype = core::Dtype::fp32;  ///< rounded to this format; fp32: unchanged
  core::Rounding rounding = core::Rounding::nearest_even;
  bool flushes_subnormals = false;  ///< subnormals of the stored format are read as zeros
};

/// The elements as floats (every storage format's values are floats), rows selected by `row_order` and columns by
/// `column_order`; an empty order is the identity. `to` has room for just the selected elements, row-major. Parallel.
void load_matrix(const MatrixView& view, std::span<const std::int64_t> row_order,
                 std::span<const std::int64_t> column_order, const OperandConversion& conversion, std::span<float> to);

/// x rounded to the format with IEEE overflow; NaN stays NaN.
[[nodiscard]] float converted(float x, core::Dtype dtype, core::Rounding rounding) noexcept;

}  // namespace numcheck::model
