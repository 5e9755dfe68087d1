// Random small GEMM cases over everything that a plan can request.
#pragma once

#include <cstdint>

#include "plan/case.hpp"

namespace numcheck::detect {

struct RandomCase {
  plan::Case c;
  int sm = 90;
};

/// Case number `index` of a sweep: every mode, architecture, output format, distribution and option of `gemm`, shapes
/// from 1 x 1 x 1 up to about 3 10^5 products. The same for the same seed and index, and always legal.
[[nodiscard]] RandomCase random_case(std::uint64_t seed, std::uint64_t index);

}  // namespace numcheck::detect
