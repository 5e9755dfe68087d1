// The op `grouped_gemm` as one cublasLtMatmul for each group, one after another on one stream.
#pragma once

#include <string>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/cublas_support/library.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::cublaslt {

/// Why a group is not passed to cuBLASLt, as gemm_obstacle() says it of a product; empty if all may be. Groups without
/// outputs are left out.
[[nodiscard]] std::string grouped_obstacle(const Call& call, int sm, std::size_t library_version);

/// Whether the library's heuristic finds an algorithm for every group. Precondition: no obstacle.
[[nodiscard]] Support grouped_support(const cublas_support::CublasLt& lt, cuda_support::CudaDevice& device,
                                      const Call& call);

/// One, with the heuristic's first algorithm of each group. Its launches hold the device and the library by reference.
[[nodiscard]] std::vector<Algorithm> grouped_algorithms(const cublas_support::CublasLt& lt,
                                                        cuda_support::CudaDevice& device, const Call& call);

}  // namespace numcheck::kernels::cublaslt
