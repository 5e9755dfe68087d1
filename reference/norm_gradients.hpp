// What the backward references of the normalisations share.
#pragma once

#include <span>
#include <vector>

#include "op/norm_params.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// dx, dgamma and, if there is a mu, dbeta.
[[nodiscard]] op::Values norm_gradients(const op::ReferenceRequest& request, const op::NormParams& p);

/// The same with what flushed subnormal numbers may cost in place of magnitudes: for explain_flushes.
[[nodiscard]] op::Values lost_gradients(const op::ReferenceRequest& request, const op::NormParams& p);

/// For op::Reference::settle: as settle_overflows, but a number is asked for where an overflow cannot have made NaN:
///
///   dx             beside a finite element, whose row's sums did not overflow, unless dz gamma' rsigma may overflow by itself
///   dgamma, dbeta  unless the terms of either sign may overflow, or 0 is multiplied by what may
[[nodiscard]] std::vector<op::Settled> settle_gradients(const op::FindingRequest& request, const op::NormParams& p);

/// Fills the derived inputs mu and rsigma from x; without a port mu (RMSNorm), rsigma is that of the mean square.
void derive_statistics(const op::DeriveRequest& request, const op::NormParams& p, bool centred,
                       std::span<double> values);

}  // namespace numcheck::reference
