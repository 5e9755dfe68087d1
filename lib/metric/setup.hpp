// Constants of one comparison: output format, error model and foreign tolerances as the kernels take them.
#pragma once

#include <cstdint>
#include <limits>

#include "metric/accumulators.hpp"
#include "metric/compare.hpp"

namespace numcheck::metric {

struct Setup {
  FormatConstants format{};
  ModelConstants model{};
  LatticeConstants lattice{};
  TermConstants terms{};
  core::Dtype dtype = core::Dtype::fp32;
  std::uint64_t residual_stride = 1;  ///< residuals are those of one segment of so many
  double output_scale = 1;            ///< y and unrounded y are multiplied by it
  double clamp = 0;                   ///< then clamped to +-clamp; infinity for formats that are not clamped
  std::uint64_t poison_bits = 0;
  double overflow_magnitude = 0;  ///< in units of the unscaled A; see model::ErrorModel
  /// A bound that asks nothing: whatever numbers the output has elsewhere, they would pass, whichever their signs are.
  double undetermined_bound = 0;
  /// What lambda kappa sqrt(V) must stay below: of many elements the rms tells what each of them may be.
  double undetermined_spread = 0;
  double undetermined_magnitude = 0;  ///< from this A on any of these numbers is within the bound
  bool exact = false;
  bool overflow_possible = false;
  double sum_above = std::numeric_limits<double>::infinity();
  bool overflow_may_be_finite = false;
  bool nan_may_become_zero = false;
};

/// lambda(N) = sqrt(2 ln(2 N / 1e-6)): any of N normal variables exceeds it in one of 10^6 comparisons.
/// Source: tensor_core_numerics, section 5.2.
[[nodiscard]] double lambda_of(std::uint64_t elements);

/// Throws core::InternalError if the spans do not match the port or the sample.
void validate(const CompareInput& input);

[[nodiscard]] Setup make_setup(const CompareInput& input);

/// Whether an element is undetermined, of rows from a source, by a finite |y|, which the largest is not below, and the largest A.
[[nodiscard]] bool is_undetermined_anywhere(const CompareInput& input, const Setup& setup, double largest,
                                            double largest_bound);

/// Number of elements that are compared: the port's, or the sample's.
[[nodiscard]] std::uint64_t compared_elements(const CompareInput& input);

}  // namespace numcheck::metric
