// One output element by the definition of a schedule, one scalar step after the other.
#pragma once

#include <vector>

#include "core/dtype.hpp"
#include "model/schedule.hpp"

namespace numcheck::testing_model {

/// a and b are the products' operands along k; k_order is ignored.
[[nodiscard]] float element_by_steps(const model::Schedule& s, core::Dtype da, core::Dtype db,
                                     const std::vector<float>& a, const std::vector<float>& b);

}  // namespace numcheck::testing_model
