// From accumulators to stored outputs: scale, addend, bias, activation, one rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "model/operand_image.hpp"
#include "model/perturbation.hpp"

namespace numcheck::model {

enum class Activation : std::uint8_t {
  none,
  relu,
  gelu_tanh,  ///< z/2 (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))
  gelu_erf,   ///< z/2 (1 + erf(z / sqrt 2))
};

/// What happens to an accumulator, in FP32 with one rounding per operation:
///
///   z = scale * acc
///   z = fma(beta, c, z) if there is a C [rounded to sum_format];  z = z + bias if there is one;  z = f(z)
///   amax = max |z|, NaN ignored
///   d = round(output, z * d_scale)
///
/// with scale = alpha * (a_scale_inv * b_scale_inv).
struct Epilogue {
  float scale = 1;
  float beta = 0;
  std::optional<MatrixView> c;     ///< m x n
  std::optional<MatrixView> bias;  ///< 1 x n
  Activation activation = Activation::none;
  std::optional<float> d_scale;  ///< FP8 outputs
  core::Dtype output = core::Dtype::fp32;
  core::Rounding rounding = core::Rounding::nearest_even;
  core::Overflow overflow = core::Overflow::ieee;
  std::optional<core::Dtype> product_format;  ///< product and bias are rounded to it before C is added
  std::optional<core::Dtype> sum_format;     ///< alpha op(A) op(B) + beta C is rounded to it before bias and activation
  float leak = 0;                            ///< what relu lets through of negative sums
  float tanh_error = 0;                      ///< amplitude of an oscillating error of gelu_tanh's tanh
  std::optional<core::Dtype> detour;         ///< rounded to this format before the output's: a double rounding
  bool flushes_subnormals = false;           ///< subnormal outputs become zero
  bool drops_nan = false;                    ///< NaN becomes zero
  std::optional<Perturbation> perturbation;  ///< of f(z)
  std::int64_t first_row = 0;                ///< that of this matrix in the perturbed output
};

/// Where D goes; element (i, j) is at data + (i * row_stride + j) * storage bytes.
struct OutputView {
  std::byte* data = nullptr;
  std::int64_t row_stride = 1;
};

/// Applies the epilogue to m x n accumulators and stores D; returns amax (0 for an empty D). With `transposed`, D[j,i]
/// is stored where D[i,j] belongs, which needs m = n. Parallel.
float apply_epilogue(const Epilogue& epilogue, std::span<const float> acc, std::int64_t m, std::int64_t n,
                     const OutputView& d, bool transposed = false);

}  // namespace numcheck::model
