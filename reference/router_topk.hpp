// The router in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::RouterTopkParams for the formula.
[[nodiscard]] op::Reference router_topk_reference();

}  // namespace numcheck::reference
