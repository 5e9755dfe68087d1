// A call of cublasLtMatmul as a Product, and the fault that NUMCHECK_K_FAULT names as the terms that plant it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <cublasLt.h>

#include "tests/gpu/k_fault.hpp"

namespace numcheck::wrapping {

/// What a call of cublasLtMatmul passes, as far as it decides the product.
struct MatmulCall {
  cublasLtMatmulDesc_t desc = nullptr;
  const void* alpha = nullptr;
  const void* a = nullptr;
  cublasLtMatrixLayout_t a_layout = nullptr;
  const void* b = nullptr;
  cublasLtMatrixLayout_t b_layout = nullptr;
  void* d = nullptr;
  cublasLtMatrixLayout_t d_layout = nullptr;
};

struct ReadProduct {
  Product product;
  std::string obstacle;  ///< why no fault can be planted in it; empty if one can
};

/// Products with an epilogue are left alone, and so are layouts, formats and scales that `gemm` does not request.
[[nodiscard]] ReadProduct read_product(const MatmulCall& call);

/// Slices of k in which the algorithm computes; 2 if it does not split k. Null: 2.
[[nodiscard]] std::int64_t slices_of(const cublasLtMatmulAlgo_t* algorithm);

struct PlannedFault {
  KFault fault;
  std::string obstacle;
};

/// The faults have the names and meanings of the simulated devices' (kernels/sim/faults.cpp), and missing_split is the
/// second slice of the algorithm's; unreduced_split_k always leaves the first half. With n slices, the second is k / n to
/// 2 k / n - 1. The program's A is the library's B, see kernels/cublaslt/problem.hpp. Stops at an unknown name.
[[nodiscard]] PlannedFault plan_fault(std::string_view name, const Product& product, std::int64_t slices);

}  // namespace numcheck::wrapping
