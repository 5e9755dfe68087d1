// How large the error bound is in the units of a plan's own limits: what those are worth.
#pragma once

#include "metric/compare.hpp"

namespace numcheck::metric {

/// B over the elements that are compared numerically.
struct BoundSize {
  double ulps = 0;    ///< largest B, in ulps of the output at y
  double rel_l2 = 0;  ///< |B|_2 / |y|_2: no error within the bound has a larger Frobenius-relative one
};

/// A pass of its own, for the few cases whose plan has such limits. Parallel; bit-identical for any thread count.
[[nodiscard]] BoundSize bound_size(const CompareInput& input);

}  // namespace numcheck::metric
