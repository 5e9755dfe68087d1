#include "kernels/cublaslt/scale_modes.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/contract/block_products.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::cublaslt {
namespace {

#if CUBLAS_VERSION >= 120900
constexpr bool kKnowsModes = true;

cublasLtMatmulMatrixScale_t mode_of(const op::GemmParams& params, const op::BlockLayout& layout) {
  if (params.scaling == "outer_vector") {
    return CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  }
  return layout.block_rows > 1 ? CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F : CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
}
#else
constexpr bool kKnowsModes = false;
#endif

}  // namespace

std::string scale_obstacle(const op::GemmParams& params, int sm, std::size_t library_version) {
  constexpr std::size_t kFirst = 120900;
  if (!op::has_line_scales(params)) {
    return {};
  }
  if (op::has_scales_in_products(params)) {
    return block_product_obstacle(params, "cuBLASLt", sm);
  }
  if (!kKnowsModes || library_version < kFirst) {
    return "FP32 scales of rows and blocks need cuBLAS 12.9 or newer";
  }
  if (sm != 90) {
    return fmt::format("cuBLASLt takes FP32 scales of rows and blocks on sm_90 only; this device is sm_{}", sm);
  }
  if (params.scaling == "outer_vector") {
    return {};
  }
  for (const auto& [name, lines] : {std::pair<std::string_view, std::int64_t>("m", params.m), {"n", params.n}}) {
    if (lines % 4 != 0) {
      return fmt::format("cuBLASLt's products with scales of blocks need m and n that are multiples of 4; {} is {}",
                         name, lines);
    }
  }
  return {};
}

void set_scale_modes(const op::GemmParams& params, cublas_support::MatmulDesc& desc) {
  if (!op::has_line_scales(params)) {
    return;
  }
#if CUBLAS_VERSION >= 120900
  desc.set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode_of(params, op::scales_of_b(params)));
  desc.set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode_of(params, op::scales_of_a(params)));
#else
  static_cast<void>(desc);
  throw core::InternalError("cuBLASLt binding: scale modes unknown to this build");
#endif
}

}  // namespace numcheck::kernels::cublaslt
