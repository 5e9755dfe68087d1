// The fused multi-term dot-product-add step of NVIDIA tensor cores, in integers, bit for bit.
#pragma once

#include <cstdint>
#include <span>

#include "core/dtype.hpp"

namespace numcheck::model {

/// rho: how the exact sum of a step becomes the result.
enum class Rounding : std::uint8_t {
  rz_fp32,   ///< truncated to 24 significant bits, subnormals in steps of 2^-149; >= 2^128 is infinite
  rz_e8m13,  ///< truncated to 14 significant bits, subnormals in steps of 2^-139; an FP32 word with 10 low zero bits
  rne_fp16,  ///< nearest even to FP16 once, from the wide sum; >= 65520 is infinite
};

/// Parameters of the step. Names L, F, rho, e_zero as in the source.
///
///   D = rho( sum_i T(a_i b_i) + T(c) ),   T(x) = truncation of |x| to multiples of 2^(e_max - F)
///
/// e_max is the largest exponent of all terms; a product's exponent is e_a + e_b, not normalised; a subnormal operand
/// keeps its format's emin; a zero term has exponent e_zero. The sum is exact; there is no sticky bit.
/// Sources: Xie et al., "MMA-Sim", arXiv 2511.10909; Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores",
/// arXiv 2512.07004; Fasi et al., PeerJ CS 7:e330, 2021.
struct StepModel {
  int L = 1;
  int F = 25;
  Rounding rho = Rounding::rz_fp32;
  int e_zero = -133;
  /// Products that are summed exactly, and aligned by the exponents of their scales: group_product.hpp; 0: each by itself.
  int group = 0;

  friend bool operator==(const StepModel&, const StepModel&) = default;
};

/// An operand as the multiplier sees it: value = significand * 2^(exponent - fraction_bits of its format).
struct Operand {
  enum class Kind : std::uint8_t { finite, infinite, nan };
  std::int32_t significand = 0;
  std::int16_t exponent = 0;
  Kind kind = Kind::finite;
};

/// Decodes a bit pattern of a format of at most 32 bits. TF32 words first lose their low 13 bits, so that a NaN whose
/// payload is only in these becomes infinite, as in hardware. Precondition: a floating-point operand format (not fp64,
/// not e8m0).
[[nodiscard]] Operand decode_operand(std::uint32_t bits, core::Dtype dtype) noexcept;

/// Accumulator format of a rounding: fp16 for rne_fp16, otherwise fp32.
[[nodiscard]] core::Dtype accumulator_dtype(Rounding rho) noexcept;

/// One step: a and b hold the same number of operands, at most 64 (hardware pads a step of fewer than L products with
/// zeros; here they may simply be omitted). `c` and the result are words of the accumulator format. NaN comes out as
/// 0x7FFFFFFF or 0x7FFF, an exact zero as +0.
[[nodiscard]] std::uint32_t fused_step(const StepModel& model, std::span<const Operand> a, core::Dtype a_dtype,
                                       std::span<const Operand> b, core::Dtype b_dtype, std::uint32_t c) noexcept;

}  // namespace numcheck::model
