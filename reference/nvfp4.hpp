// Casts to NVFP4 and back, of whole tensors, on all threads. The rules are in op/nvfp4.hpp.
#pragma once

#include <cstdint>
#include <span>

#include "core/buffer.hpp"
#include "op/nvfp4.hpp"
#include "op/quantize.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// The scale of a block by its amax, and what the block's elements are multiplied by.
class Nvfp4Rule {
 public:
  struct Scale {
    float factor = 1;
    float stored = 1;
  };

  /// Precondition: amaxes are >= 0.
  explicit Nvfp4Rule(double global_amax);
  [[nodiscard]] Scale operator()(double block_amax) const;

 private:
  float per_six_;  ///< RN32(S RN32(1 / 6))
  float inverse_;  ///< RN32(1 / S)
};

/// A matrix whose blocks are 16 elements of a line, or 16 x 16: x, or its transpose.
struct Nvfp4Matrix {
  const double* data = nullptr;
  std::int64_t lines = 0;
  std::int64_t length = 0;
  bool is_square = false;

  [[nodiscard]] std::int64_t across() const noexcept { return (length + op::kNvfp4Block - 1) / op::kNvfp4Block; }
};

/// The scaled elements of every line, RN32(x factor), whose codes are still to be made.
struct Nvfp4Scaled {
  core::Buffer<double> values;  ///< [lines, length]
  core::Buffer<double> scales;  ///< [lines, across]
};
[[nodiscard]] Nvfp4Scaled nvfp4_scaled(const Nvfp4Matrix& matrix, const Nvfp4Rule& rule);

/// Their codes to nearest even, two in a byte. Precondition: their number is even.
[[nodiscard]] core::Buffer<double> nvfp4_bytes(std::span<const double> scaled);

/// The outputs of `quantize`, of both layouts that the shape allows.
[[nodiscard]] op::Values nvfp4_quantized(const op::ReferenceRequest& request);

/// y of `dequantize`.
[[nodiscard]] op::Values nvfp4_dequantized(const op::ReferenceRequest& request);

/// The amax of x, or of its transformed columns; codes, scales and the amax that `dequantize` reads, from draws.
void derive_global_amax(const op::DeriveRequest& request, std::span<double> values);
void derive_nvfp4(const op::DeriveRequest& request, std::span<double> values);

}  // namespace numcheck::reference
