// Why gradients of attention with dropout are wrong.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Adds the causes that explain what was delivered: D without the factor 1 - dropout that it has where scores are multiplied
/// by 1 / (1 - dropout) later, and the gradient of the offset with that factor. `backward` computes the gradients.
void explain_dropout(const op::FindingRequest& request, op::Values (*backward)(const op::ReferenceRequest&),
                     std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
