// Scaled operands as the numbers that they stand for.
#pragma once

#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// Operands of which every number is that of the tensor: `data` holds code * scale; `scale` still says by what the codes are
/// multiplied. The given ones must outlive this object.
class Dequantised {
 public:
  explicit Dequantised(std::span<const op::Operand> operands);
  [[nodiscard]] std::span<const op::Operand> operands() const noexcept { return operands_; }

 private:
  std::vector<core::Buffer<double>> values_;
  std::vector<op::Operand> operands_;
};

}  // namespace numcheck::reference
