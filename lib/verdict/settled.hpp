// Elements of which FP32 overflows decide what is right: see op::Reference::settle.
#pragma once

#include <memory>
#include <string>

#include "op/reference.hpp"

namespace numcheck::verdict {

struct EvaluationContext;

/// The outputs by which a run is judged, where they are not those of the reference as they stand.
struct SettledValues {
  op::Values values;
  std::string key;  ///< equal if the same elements are settled in the same way
};

/// Null if all is as the reference says.
[[nodiscard]] std::shared_ptr<const SettledValues> settled_values(const EvaluationContext& context);

}  // namespace numcheck::verdict
