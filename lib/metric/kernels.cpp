#include "metric/kernels.hpp"

#include "core/isa.hpp"

namespace numcheck::metric {

const Kernels& kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(kKernels);
}

}  // namespace numcheck::metric
