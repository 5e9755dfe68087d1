// Batches of matrix products with the strides that attention's tensors have, in cuBLASLt's terms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cublasLt.h>

#include "kernels/cublas_support/algorithm_text.hpp"
#include "kernels/cublas_support/handles.hpp"
#include "kernels/cublas_support/library.hpp"
#include "op/mode.hpp"

namespace numcheck::kernels::unfused {

/// Workspace limit for the heuristic: what TransformerEngine and PyTorch give cuBLAS on Hopper. Fixed, because it
/// changes the choice of algorithm and hence the bits.
inline constexpr std::size_t kWorkspaceLimit = std::size_t{32} << 20;

/// A batch has three dimensions: sequences, heads of keys, and heads of queries that share one of them.
inline constexpr std::size_t kBatchDimensions = 3;

/// Row-major matrices of one shape, by their elements' distances. A stride of 0 means that all share the matrix.
struct Stack {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  std::array<std::int64_t, kBatchDimensions> strides{};
  std::int64_t first = 0;  ///< elements between an aligned address and the first one
};

/// op(A), with op the identity or the transposition.
struct Factor {
  Stack stack;
  bool transposed = false;
};

/// D = alpha op(A) op(B), for every matrix of the batch.
struct ProductShape {
  Factor a, b;
  Stack d;
  std::array<std::int64_t, kBatchDimensions> counts{};
  double alpha = 1;
};

/// One dimension of a batch: so many matrices, and the elements between them in each operand.
struct BatchDimension {
  std::int64_t count = 1;
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t d = 0;
};

/// The batch in as few dimensions as possible, the longest first: it becomes the library's strided batch, and the
/// products of the others are enqueued one after another. Never empty.
[[nodiscard]] std::vector<BatchDimension> merged_batch(const ProductShape& shape);

/// The products of one shape, with the algorithm that the heuristic puts first.
///
/// Row-major D = op(A) op(B) is column-major D^T = op(B)^T op(A)^T, and a row-major matrix read as column-major is its
/// transpose: so the library's A is our B, its B our A, its m our n, and transposition flags stay with their matrix.
class BatchedProduct {
 public:
  /// Operands have the mode's first format and start at multiples of 256 bytes. Throws NotSupported, naming the product
  /// by `name`, if the library offers no algorithm, and CublasError.
  BatchedProduct(const cublas_support::CublasLt& lt, const op::Mode& mode, int sm, std::string name,
                 const ProductShape& shape);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  /// The algorithm's label and flags, and in how many calls the batch runs.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] int rounded_slices() const noexcept { return slices_; }

  /// Throws NotSupported or CublasError.
  void enqueue(const void* a, const void* b, void* d, std::byte* workspace, cudaStream_t stream) const;

 private:
  void choose_algorithm(int sm, const ProductShape& shape);

  const cublas_support::CublasLt& lt_;
  std::string name_;
  float alpha_;
  std::int64_t element_bytes_;
  std::vector<BatchDimension> batch_;
  cublas_support::MatmulDesc desc_;
  cublas_support::MatrixLayout first_;   ///< of our B
  cublas_support::MatrixLayout second_;  ///< of our A
  cublas_support::MatrixLayout d_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_bytes_ = 0;
  std::string text_;
  int slices_ = 1;
};

}  // namespace numcheck::kernels::unfused
