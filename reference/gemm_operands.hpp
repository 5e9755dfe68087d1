// What the parts of the GEMM reference share: checked operands, and the formula outside the product.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/buffer.hpp"
#include "op/gemm.hpp"
#include "op/reference.hpp"
#include "reference/matmul.hpp"

namespace numcheck::reference {

/// A request, typed and checked. Pointers are null where the formula does not read the operand.
struct GemmOperands {
  op::GemmParams params;
  ProductShape shape;
  Factor<double> a;
  Factor<double> b;
  const double* c = nullptr;     ///< batch x m x n
  const double* bias = nullptr;  ///< n
  double product_scale = 1;      ///< alpha sA sB
  double c_scale = 1;            ///< beta sC
  double bias_scale = 1;
  bool has_amax = false;  ///< the output is FP8
  /// A and B where rows or blocks have scales of their own, multiplied by them; otherwise null.
  std::array<std::shared_ptr<const core::Buffer<double>>, 2> dequantised;

  [[nodiscard]] std::int64_t outputs() const noexcept { return shape.batch * shape.m * shape.n; }
};

/// Finds the operands by port name; throws core::InternalError if one is missing or its shape differs from what the
/// parameters say, or if a sampled index is not an output.
[[nodiscard]] GemmOperands gemm_operands(const op::ReferenceRequest& request);

/// The same, of A and B what yardsticks are sums of: where rows or blocks have scales, aligned_magnitudes.
[[nodiscard]] GemmOperands gemm_magnitudes(const op::ReferenceRequest& request);

/// Whether all that the formula reads is finite, scales included.
[[nodiscard]] bool all_finite(const GemmOperands& g);

enum class Epilogue { none, relu, gelu };

[[nodiscard]] Epilogue parse_epilogue(const op::GemmParams& params);

/// f(z) of the epilogue.
[[nodiscard]] double apply_epilogue(Epilogue epilogue, double z) noexcept;

/// Z of flat output `index` in column `col`, from its sum of products.
[[nodiscard]] inline double affine(const GemmOperands& g, double sum, std::int64_t index, std::int64_t col) noexcept {
  const double z = g.product_scale * sum;
  const double with_c = g.c == nullptr ? z : z + g.c_scale * g.c[index];
  return g.bias == nullptr ? with_c : with_c + g.bias_scale * g.bias[col];
}

}  // namespace numcheck::reference
