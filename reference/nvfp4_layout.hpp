// What is cast to NVFP4 in one layout of a case.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "op/quantize.hpp"
#include "op/reference.hpp"
#include "reference/nvfp4.hpp"

namespace numcheck::reference {

/// The rows of x, or its columns, transformed if the case asks for it.
class Nvfp4Layout {
 public:
  /// `has_signs`: as that of hadamard_transformed. The inputs must outlive this object.
  Nvfp4Layout(const op::QuantizeParams& p, std::span<const op::Operand> inputs, const op::BlockLayout& layout,
              bool has_signs = true);

  [[nodiscard]] const Nvfp4Matrix& matrix() const noexcept { return matrix_; }
  [[nodiscard]] const Nvfp4Rule& rule() const noexcept { return rule_; }
  [[nodiscard]] Nvfp4Scaled scaled() const { return nvfp4_scaled(matrix_, rule_); }
  /// True if the codes and the scale of that element's block depend on the order of FP32 sums.
  [[nodiscard]] bool is_uncertain(std::size_t element) const noexcept {
    return !uncertain_.empty() && uncertain_[element / static_cast<std::size_t>(op::kNvfp4Block)] != 0;
  }
  /// For every block; empty if no block is uncertain.
  [[nodiscard]] std::span<const std::uint8_t> uncertain() const noexcept { return uncertain_; }

 private:
  core::Buffer<double> own_;
  std::vector<std::uint8_t> uncertain_;
  Nvfp4Matrix matrix_;
  Nvfp4Rule rule_;
};

/// The port of the amax from which the layout's scales follow.
[[nodiscard]] std::string_view amax_port(const op::QuantizeParams& p, const op::BlockLayout& layout);

}  // namespace numcheck::reference
