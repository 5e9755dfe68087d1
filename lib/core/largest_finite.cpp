#include "core/largest_finite.hpp"

#include "core/isa.hpp"
#include "core/magnitude_kernels.hpp"

namespace numcheck::core {

Magnitudes magnitudes_of(std::span<const double> values) noexcept {
  Magnitudes found;
  NUMCHECK_ACTIVE_ISA(add_magnitudes)(values.data(), values.size(), found.largest, found.all_finite);
  return found;
}

}  // namespace numcheck::core
