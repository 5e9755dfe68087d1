// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "lane_functions.hpp"

#include "reference/lanes.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

void exponential(const double* x, std::size_t count, double* out) {
  for (std::size_t i = 0; i < count; i += kPartLanes) {
    exponential_of(Doubles::load(x + i)).store(out + i);
  }
}

void hyperbolic_tangent(const double* x, std::size_t count, double* out) {
  for (std::size_t i = 0; i < count; i += kPartLanes) {
    hyperbolic_tangent_of(Doubles::load(x + i)).store(out + i);
  }
}

constexpr testing::LaneFunctions kFunctions = {exponential, hyperbolic_tangent};

}  // namespace

const testing::LaneFunctions& lane_functions() noexcept {
  return kFunctions;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
