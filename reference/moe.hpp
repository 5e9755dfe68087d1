// Mixture-of-experts moves and the router in double and with their error models.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::MoePermuteParams, op::MoeUnpermuteParams and op::RouterTopkParams for the formulas.
[[nodiscard]] op::Reference moe_permute_reference();
[[nodiscard]] op::Reference moe_unpermute_reference();

}  // namespace numcheck::reference
