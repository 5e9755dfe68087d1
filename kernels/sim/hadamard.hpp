// The random Hadamard transform of a simulated device: FP32 butterflies. The rule is in op/nvfp4.hpp.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace numcheck::kernels::sim {

/// A matrix, and along what sixteen elements at a time are transformed. Rows that are no multiple of 16 keep their last elements.
struct HadamardLines {
  std::size_t rows = 0;
  std::size_t cols = 0;
  bool along_columns = true;
};
[[nodiscard]] std::vector<float> hadamard_transformed(std::vector<float> x, const HadamardLines& lines,
                                                      std::string_view fault);

}  // namespace numcheck::kernels::sim
