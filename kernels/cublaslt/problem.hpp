// One matrix product in cuBLASLt's terms: descriptors, layouts, alignments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <cublasLt.h>

#include "kernels/contract/backend.hpp"
#include "kernels/cublas_support/handles.hpp"
#include "op/gemm.hpp"

namespace numcheck::kernels::cublaslt {

/// "GELU_BIAS": the library's name for the epilogue; empty if there is none.
[[nodiscard]] std::string_view epilogue_name(const op::GemmParams& params) noexcept;

/// Bytes of the device memory that stands in for operands while the heuristic is asked.
inline constexpr std::size_t kScratchBytes = 256;

/// Row-major D = op(A) op(B) is column-major D^T = op(B)^T op(A)^T, and a row-major matrix read as column-major is its
/// transpose: so the library's A is our B, its B our A, its m our n, and nothing is copied. Transposition flags stay
/// with their matrix.
class LtProblem {
 public:
  /// `scratch`, 256-byte aligned device memory, stands in for pointers that the heuristic looks at (bias, scales).
  LtProblem(const cublas_support::CublasLt& lt, const Call& call, const std::byte* scratch);

  struct Candidates {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    std::vector<cublasLtMatmulHeuristicResult_t> results;  ///< usable ones, best first
  };
  [[nodiscard]] Candidates heuristic(int requested, std::size_t workspace_limit);

  /// Enqueues the product on `stream`. Throws CublasError.
  void enqueue(std::span<const PortMemory> ports, const cublasLtMatmulAlgo_t& algorithm, std::byte* workspace,
               std::size_t workspace_bytes, cudaStream_t stream);

 private:
  void set_epilogue(const std::byte* scratch);
  void set_scale_pointers(std::span<const PortMemory> ports);
  /// Layout of C: that of D where C is D, because the library requires the same descriptor for an in-place product.
  [[nodiscard]] cublasLtMatrixLayout_t addend_layout() const noexcept {
    return has_addend_ || quantised_ ? c_.get() : d_.get();
  }

  const cublas_support::CublasLt& lt_;
  std::vector<op::Port> ports_;
  op::GemmParams params_;
  bool half_scalars_;
  bool has_addend_;
  bool quantised_;  ///< FP8 D: C has another type, and is absent unless beta is set
  cublas_support::MatmulDesc desc_;
  cublas_support::MatrixLayout first_;   ///< of our B
  cublas_support::MatrixLayout second_;  ///< of our A
  cublas_support::MatrixLayout c_;
  cublas_support::MatrixLayout d_;
};

}  // namespace numcheck::kernels::cublaslt
