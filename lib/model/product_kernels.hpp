// Inner loops of the simulator, compiled once per instruction set. Plain types only: nothing here may emit a symbol
// that another translation unit shares (core/isa.hpp).
#pragma once

#include <cstdint>

namespace numcheck::model {

/// Columns of D that one call of ProductKernels::fused computes.
inline constexpr int kFusedColumns = 16;

/// Columns of D that one call of ProductKernels::fma computes.
inline constexpr int kFmaColumns = 64;

/// Stands for the exponent of a product that has none (zero or not finite): below every e_zero.
inline constexpr std::int32_t kNoExponent = -4096;

enum class KernelRounding : int { rz_fp32, rz_e8m13, rne_fp16 };

/// A step as the kernels see it.
struct StepParameters {
  int L = 1;
  int F = 0;
  KernelRounding rounding = KernelRounding::rz_fp32;
  std::int32_t e_zero = 0;
  std::int32_t accumulator_emin = 0;
};

/// `count` products of one row of A and kFusedColumns columns of B, in steps of L, starting with the first.
struct FusedRun {
  const double* a = nullptr;                 ///< [count]
  const std::int32_t* a_exponent = nullptr;  ///< [count], kNoExponent for zeros
  const double* b = nullptr;                 ///< [count][kFusedColumns]
  const std::int32_t* b_exponent = nullptr;  ///< [count][kFusedColumns]
  float* c = nullptr;                        ///< [kFusedColumns], the running result, in and out
  std::int64_t count = 0;
};

/// `count` products of `rows` rows of A and kFmaColumns columns of B, each added with one rounding.
struct FmaRun {
  const float* a = nullptr;  ///< element t of row r at a[r * a_stride + t]
  const float* b = nullptr;  ///< [count][kFmaColumns]
  float* c = nullptr;        ///< row r at c + r * c_stride, in and out
  std::int64_t a_stride = 0;
  std::int64_t c_stride = 0;
  std::int64_t rows = 0;
  std::int64_t count = 0;
};

/// Values and exponents of operands, as ProductKernels::fused takes them.
struct PackRun {
  const float* from = nullptr;
  double* value = nullptr;
  std::int32_t* exponent = nullptr;
  std::int64_t count = 0;
  std::int32_t emin = 0;  ///< exponent of subnormal operands in their own format
};

struct ProductKernels {
  void (*fused)(const StepParameters& step, const FusedRun& run);
  void (*fma)(const FmaRun& run);
  void (*pack)(const PackRun& run);
};

namespace baseline {
[[nodiscard]] const ProductKernels& product_kernels() noexcept;
}
namespace avx2 {
[[nodiscard]] const ProductKernels& product_kernels() noexcept;
}
namespace avx512 {
[[nodiscard]] const ProductKernels& product_kernels() noexcept;
}

}  // namespace numcheck::model
