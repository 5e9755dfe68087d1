// Modes: how numbers are stored, scaled and multiplied. A mode is a request; what really ran is observed (trust.md
// section 4).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/dtype.hpp"

namespace numcheck::op {

/// Arithmetic requested of a matrix product (names follow cublasComputeType_t).
enum class Compute : std::uint8_t {
  fp32,             ///< at least FP32 products and sums
  fp32_pedantic,    ///< FP32 in all phases, no tensor cores
  fast_tf32,        ///< FP32 operands may be rounded to TF32
  fast_16f,         ///< FP32 operands may be rounded to FP16
  fast_16bf,        ///< FP32 operands may be rounded to BF16
  emulated_bf16x9,  ///< FP32 emulated by nine BF16 products (sm_100)
  fp16,             ///< FP16 accumulation
};

/// One row of the mode table.
struct Mode {
  std::string_view name;  ///< as in plans: "fp8_hybrid"
  core::Dtype first;      ///< storage of the first operand (and of every input of a one-operand op)
  core::Dtype second;     ///< storage of the second operand
  core::Dtype output;     ///< storage of the output unless the op's parameters choose another
  Compute compute;
  bool scaled;  ///< operands carry a per-tensor scale (value = code * scale_inv)
  std::string_view doc;
};

/// All modes, in documentation order.
[[nodiscard]] std::span<const Mode> all_modes() noexcept;

/// The mode with that name, or null.
[[nodiscard]] const Mode* find_mode(std::string_view name) noexcept;

}  // namespace numcheck::op
