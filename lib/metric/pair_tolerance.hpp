// Which tolerance a comparison of two right results may have.
#pragma once

#include <optional>

#include "metric/compare.hpp"

namespace numcheck::metric {

/// What comparisons of two right results may be asked: |a - b| <= atol + rtol |b|, as numpy.allclose and torch.allclose have it.
struct PairTolerance {
  double rtol = 0;  ///< one ulp of the output's format, of a power of two: each result may be rounded the other way
  double atol = 0;  ///< what twice the error that mark_wrong accepts exceeds that by, at the element where it is most
};

/// Of all compared elements; nothing if the error of one has no limit, or if the output is exact.
[[nodiscard]] std::optional<PairTolerance> pair_tolerance(const CompareInput& input);

}  // namespace numcheck::metric
