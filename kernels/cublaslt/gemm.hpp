// The op `gemm` as a cublasLtMatmul.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/cublas_support/algorithm_text.hpp"
#include "kernels/cublas_support/library.hpp"
#include "kernels/cublaslt/heuristic_memo.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "op/gemm.hpp"

namespace numcheck::kernels::cublaslt {

/// Workspace limit for the heuristic. Fixed, because it changes the choice of algorithm and hence the bits.
inline constexpr std::size_t kWorkspaceLimit = std::size_t{64} << 20;

/// Adds what was requested besides the product; some kernels do it in the output's format.
void add_product_options(const op::GemmParams& params, cublas_support::AlgorithmText& text);

/// Why this product is not passed to cuBLASLt, as a sentence; empty if it may be. Checks what the manual states: FP8
/// needs sm_89, rows and addresses that are multiples of 16 bytes, and the layout A B^T up to sm_90 and on sm_120;
/// k = 0 is not supported. Source: cuBLAS manual, cublasLtMatmul.
[[nodiscard]] std::string gemm_obstacle(const Call& call, int sm, std::size_t library_version);

/// Whether the library's heuristic finds an algorithm. Precondition: no obstacle.
[[nodiscard]] Support gemm_support(const cublas_support::CublasLt& lt, cuda_support::CudaDevice& device,
                                   HeuristicMemo& memo, const Call& call);

/// Backend::configurations: algorithm, tile, stages, split factor, reduction, custom option and cluster, with the class
/// of the product.
[[nodiscard]] std::vector<std::string> gemm_configurations(const cublas_support::CublasLt& lt,
                                                           cuda_support::CudaDevice& device, HeuristicMemo& memo,
                                                           const Call& call);

/// The algorithms that the case asks for: the heuristic's first, its first N, or all of its results (at most 64).
/// Launches hold the device and the library by reference.
[[nodiscard]] std::vector<Algorithm> gemm_algorithms(const cublas_support::CublasLt& lt,
                                                     cuda_support::CudaDevice& device, HeuristicMemo& memo,
                                                     const Call& call);

}  // namespace numcheck::kernels::cublaslt
