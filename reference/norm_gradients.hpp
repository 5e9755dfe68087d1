// What the backward references of the normalisations share.
#pragma once

#include <span>

#include "op/norm_params.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// dx, dgamma and, if there is a mu, dbeta.
[[nodiscard]] op::Values norm_gradients(const op::ReferenceRequest& request, const op::NormParams& p);

/// The same with what flushed subnormal numbers may cost in place of magnitudes: for explain_flushes.
[[nodiscard]] op::Values lost_gradients(const op::ReferenceRequest& request, const op::NormParams& p);

/// Fills the derived inputs mu and rsigma from x; without a port mu (RMSNorm), rsigma is that of the mean square.
void derive_statistics(const op::DeriveRequest& request, const op::NormParams& p, bool centred,
                       std::span<double> values);

}  // namespace numcheck::reference
