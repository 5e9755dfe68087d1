// Scales of the operands of an FP8 product.
//
//   scaling          A, m x k               B, k x n                  stored, row-major
//   tensor           one                    one
//   outer_vector     one per row            one per column            [m], [n]
//   1x128_1x128      128 of k               128 of k                  [ceil(k / 128), m to 4], [ceil(k / 128), n to 4]
//   1x128_128x128    128 of k               128 of k, of 128 columns  the same, [ceil(n / 128), ceil(k / 128) to 4]
//   128x128_1x128    128 of k, of 128 rows  128 of k                  [ceil(m / 128), ceil(k / 128) to 4], as above
//   mxfp8            32 of k                32 of k                   [m, ceil(k / 32) to 4], [n, ceil(k / 32) to 4], E8M0
//   nvfp4            16 of k                16 of k                   [m, ceil(k / 16) to 4], [n, ceil(k / 16) to 4], E4M3
//
// All others are FP32. Instructions of sm_100 and later multiply with the scales of mxfp8 and nvfp4: products are aligned and
// summed as they are with them, and no sum is scaled, but by the two FP32 numbers that nvfp4 has for whole operands (op/nvfp4.hpp).
// "to 4": rows of scales are that many elements apart. These are the layouts in which quantize leaves row-wise scales, GEMM-ready
// (block_scaling.hpp), so that both operands are stored with k within rows: A B^T.
// Source: cuBLAS manual, "Block-wise scaling" of cublasLtMatmul; TransformerEngine common/gemm/cublaslt_gemm.cu; for mxfp8 OCP MX
// 1.0 and tensor_core_numerics, section 1.6; for nvfp4 the same, and common/cast/nvfp4/core_nvfp4.cuh.
#pragma once

#include <span>
#include <vector>

#include "op/block_scaling.hpp"
#include "op/gemm.hpp"

namespace numcheck::op {

/// True unless either operand has one scale.
[[nodiscard]] bool has_line_scales(const GemmParams& params) noexcept;

/// True of mxfp8 and nvfp4, whose scales matrix instructions multiply with.
[[nodiscard]] bool has_scales_in_products(const GemmParams& params) noexcept;

/// True of nvfp4: each operand has a number for the whole tensor besides.
[[nodiscard]] bool has_global_scales(const GemmParams& params) noexcept;

/// Products with the same scales, or, where instructions do not multiply with them, that are summed before: 16, 32, 128, or k.
/// Precondition: has_line_scales.
[[nodiscard]] std::int64_t scaled_products(const GemmParams& params) noexcept;

/// Where the scales of A, and of B as it is stored, n x k, are. Precondition: has_line_scales.
[[nodiscard]] BlockLayout scales_of_a(const GemmParams& params);
[[nodiscard]] BlockLayout scales_of_b(const GemmParams& params);

/// Why these parameters have no such scales, as sentences of a plan's checks.
[[nodiscard]] std::vector<std::string> scaling_mistakes(const GemmParams& params, const Mode& mode);

/// Integers of the exact leg, drawn for scales, as 1 or 2. Op::exact_inputs of gemm.
void gemm_exact_inputs(const Params& params, const Port& port, std::span<double> values);

/// What exact_inputs multiplies products by, at most.
inline constexpr std::int64_t kLargestExactScales = 4;

}  // namespace numcheck::op
