// Factors that are sizes of the case.
#pragma once

#include <optional>
#include <string>

#include "plan/case.hpp"

namespace numcheck::diagnose {

/// A size of the case, or two of them multiplied, of which the factor is one, or one over it, or a root: a mean for a sum, a
/// softmax scale.
struct SizeFactor {
  double factor = 0;
  std::string text;  ///< "1 / rows", and what else has that value: "batches or sqrt(d)"
};
[[nodiscard]] std::optional<SizeFactor> factor_of_sizes(const plan::Case& c, double factor);

}  // namespace numcheck::diagnose
