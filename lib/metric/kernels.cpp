#include "metric/kernels.hpp"

#include "core/isa.hpp"

namespace numcheck::metric {

const Kernels& kernels() noexcept {
#if defined(__x86_64__)
  switch (core::active_isa()) {
    case core::Isa::baseline:
      return baseline::kKernels;
    case core::Isa::avx2:
      return avx2::kKernels;
    case core::Isa::avx512:
      return avx512::kKernels;
  }
#endif
  return baseline::kKernels;
}

}  // namespace numcheck::metric
