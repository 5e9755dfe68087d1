// Stochastic rounding of a simulated device to E2M1. The rule is in op/nvfp4.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace numcheck::kernels::sim {

struct StochasticCodes {
  bool is_stochastic = false;
  std::uint64_t seed = 0;
  bool turned = false;  ///< of the layout along columns, which has draws of its own
  std::string_view fault;

  /// The code of the number, with the random bits of that element.
  [[nodiscard]] unsigned code(float scaled, std::size_t element) const;
};

}  // namespace numcheck::kernels::sim
