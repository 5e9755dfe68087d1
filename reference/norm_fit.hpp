// The fit of one row of a normalisation's output: how far its scale is off. See norm_findings.hpp.
#pragma once

#include <cstddef>

#include "core/dtype.hpp"
#include "op/reference.hpp"
#include "reference/norm_regression.hpp"

namespace numcheck::reference {

/// What the rows of a case are fitted from.
struct Fitter {
  op::Operand x;
  op::Operand gamma;
  const op::Operand* beta;  ///< null: RMSNorm
  const op::OutputValues* y;
  const op::OutputValues* rsigma;
  const op::OutputValues* mu;  ///< null: RMSNorm
  double epsilon;
  op::Delivered delivered;
  double centre;  ///< what is added to gamma

  [[nodiscard]] bool narrow() const { return core::dtype_info(delivered.dtype).storage_bytes < 4; }
};

/// V of one element, with the rounding of a 16- or 8-bit output. FP32's is already part of V.
[[nodiscard]] double variance_of(const Fitter& f, std::size_t at);

/// A row that cannot be used is not finite, has no errors, or spreads over less than an ulp of what it is stored as.
[[nodiscard]] RowFit fit_row(const Fitter& f, std::size_t i);

}  // namespace numcheck::reference
