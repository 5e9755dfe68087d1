// The dropout mask that a backend draws for attention (op::attention_dropout).
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// True for a case whose mask is drawn, unless what was drawn is given.
[[nodiscard]] bool lacks_drawn_mask(const op::ReferenceRequest& request);

/// The mask alone, of which nothing is known: every other output depends on it.
[[nodiscard]] op::Values drawn_mask(const op::ReferenceRequest& request);

/// Findings about a mask that was drawn; none in other cases. Each is a gate that a correct generator trips once in 10^7
/// runs at most, by Bernstein's inequality for independent draws.
[[nodiscard]] std::vector<op::Finding> judge_drawn_mask(const op::FindingRequest& request);

}  // namespace numcheck::reference
