// Functions of reference/lanes.hpp on arrays, by instruction set: lane_functions.cpp is compiled once for each.
// Plain types only: nothing here may emit a symbol that another translation unit shares.
#pragma once

#include <cstddef>

#include "core/isa.hpp"

namespace numcheck::reference::testing {

struct LaneFunctions {
  /// out = f(x); `count` is a multiple of eight.
  void (*exponential)(const double* x, std::size_t count, double* out);
  void (*hyperbolic_tangent)(const double* x, std::size_t count, double* out);
};

}  // namespace numcheck::reference::testing

namespace numcheck::reference {

namespace baseline {
[[nodiscard]] const testing::LaneFunctions& lane_functions() noexcept;
}
namespace avx2 {
[[nodiscard]] const testing::LaneFunctions& lane_functions() noexcept;
}
namespace avx512 {
[[nodiscard]] const testing::LaneFunctions& lane_functions() noexcept;
}

/// Those of the active instruction set.
[[nodiscard]] inline const testing::LaneFunctions& lane_functions() noexcept {
  return NUMCHECK_ACTIVE_ISA(lane_functions)();
}

}  // namespace numcheck::reference
