// Attention's gradients from the reference's own forward pass.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// True for a case that runs the forward pass (op::AttentionParams::runs_forward), unless what that left is given.
[[nodiscard]] bool needs_own_forward(const op::ReferenceRequest& request);

/// The outputs of the forward pass, o and lse, with their error models' facts, then those of `backward` for exactly these o
/// and lse, rounded to no format: values only.
[[nodiscard]] op::Values with_own_forward(const op::ReferenceRequest& request,
                                          op::Values (*backward)(const op::ReferenceRequest&));

}  // namespace numcheck::reference
