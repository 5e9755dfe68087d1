// The inner loops of products with packed factors, compiled once per instruction set. They use fused multiply-adds, which the
// baseline puts together (reference/fused.hpp): all sets produce the same bits.
// Plain types only: nothing here may emit a symbol that another translation unit shares.
#pragma once

#include <cstddef>

namespace numcheck::reference {

/// A matrix: element (i, j) is data[i * row_step + j * col_step].
template <class T>
struct SteppedMatrix {
  const T* data;
  std::ptrdiff_t row_step, col_step;
};

/// out (rows x cols, `out_stride` elements from row to row) = left (rows x depth) * right (depth x cols), or out += that.
/// `right` is packed.
template <class T>
struct PackedOperands {
  SteppedMatrix<T> left;
  const T* right;
  std::size_t rows, cols, depth;
  T* out;
  std::ptrdiff_t out_stride;
  bool accumulate;
};

/// A packed matrix is cut into panels of some vectors of columns, the last of which has fewer. Each of them is stored row by
/// row, padded with zeros to a multiple of `lanes` columns.
template <class T>
struct PackedKernels {
  std::size_t lanes = 0;  ///< numbers of a vector
  /// `packed` has room for depth rows of `cols` numbers, rounded up to a multiple of `lanes`, and is aligned to 64 bytes.
  void (*pack)(const SteppedMatrix<T>& given, std::size_t depth, std::size_t cols, T* packed) = nullptr;
  /// Every element is the sum of its own row's and column's products in the order of depth, in parts of 64: it does not
  /// depend on what else is multiplied, and numbers that are not finite stay in their row or column.
  void (*multiply)(const PackedOperands<T>& operands) = nullptr;
};

namespace baseline {
[[nodiscard]] const PackedKernels<double>& packed_kernels() noexcept;
[[nodiscard]] const PackedKernels<float>& packed_float_kernels() noexcept;
}  // namespace baseline
namespace avx2 {
[[nodiscard]] const PackedKernels<double>& packed_kernels() noexcept;
[[nodiscard]] const PackedKernels<float>& packed_float_kernels() noexcept;
}  // namespace avx2
namespace avx512 {
[[nodiscard]] const PackedKernels<double>& packed_kernels() noexcept;
[[nodiscard]] const PackedKernels<float>& packed_float_kernels() noexcept;
}  // namespace avx512

}  // namespace numcheck::reference
