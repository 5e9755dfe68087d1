#include "reference/dequantised.hpp"

#include <cstddef>
#include <utility>

#include "core/parallel.hpp"

namespace numcheck::reference {

Dequantised::Dequantised(std::span<const op::Operand> operands) : operands_(operands.begin(), operands.end()) {
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  for (op::Operand& operand : operands_) {
    if (operand.scale == 1) {
      continue;
    }
    core::Buffer<double> values(operand.elements());
    core::parallel_chunks(values.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        values[i] = operand.data[i] * operand.scale;
      }
    });
    operand.data = values.data();
    values_.push_back(std::move(values));
  }
}

}  // namespace numcheck::reference
