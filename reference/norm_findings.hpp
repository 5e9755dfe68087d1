// What the rows of a normalisation's output say about its statistics.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "op/norm_params.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// With e_ij the error of y_ij (against RN(y_ij) where y has 16 or 8 bits), s_ij = y_ij - beta_j, v_i the row's
/// variance (mean square where `centred` is false), every row is fitted by
///
///   e_ij ~ rho_i s_ij [+ alpha_i gamma_j]        weights 1 / V_ij; alpha if there is a mean
///
/// so that rho_i is the relative error of rsigma_i as seen in y, with a predicted variance R_i + O_i: that of rsigma,
/// and that of the fit. Two kinds of findings follow, from rows of at least 8 finite elements:
///
///   row scale error   the mean of rho_i with weights 1 / (R_i + O_i). From 8 rows on, a gate:
///                     kappa (2 sqrt(mean R) + 5 standard errors of the O_i) + 4 u; R does not shrink with the number
///                     of rows, and O_i not with that of rows whose results are the same, because equal rows have equal
///                     errors. An FP32 output beyond that is fitted to its roundings alone: O_i is no smaller than the
///                     square of what these leave in the row, and twice their mean is added. Its text names the worst row
///                     if few are off.
///   row regression    (v_i + epsilon) / (1 + rho_i)^2 ~ (1 + b) v_i + epsilon + d: the relative error b of the
///                     variance (1 / (n - 1) for n - 1 instead of n) and the error d of epsilon, as text if they
///                     explain the rows' scales.
///
/// Source: tensor_core_numerics section 5.5.
[[nodiscard]] std::vector<op::Finding> norm_findings(const op::FindingRequest& request, const op::NormParams& p,
                                                     bool centred);

/// The same of rows that are not all there at a time.
[[nodiscard]] std::unique_ptr<op::RowFindings> norm_row_findings(const op::NormParams& p, std::int64_t rows,
                                                                 bool centred);

/// "gamma + 1 is rounded to bf16"
[[nodiscard]] std::string rounded_gamma_note(core::Dtype format);

/// "x rsigma is rounded to bf16 before gamma is applied"
[[nodiscard]] std::string rounded_product_note(core::Dtype format);

/// The gates of norm_findings.
[[nodiscard]] std::span<const op::OwnGate> norm_gates();

}  // namespace numcheck::reference
