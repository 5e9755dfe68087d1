// Row normalisations on a simulated device: statistics of a row in FP32, and what can go wrong with them.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/sim/op_faults.hpp"
#include "op/norm_params.hpp"

namespace numcheck::kernels::sim {

/// Faults of a forward pass that both normalisations can have.
///   epsilon_x10                 epsilon is ten times the requested one
///   bessel                      the mean of squares divides by n - 1
///   bf16_statistics             the statistics are rounded to BF16
///   last_element_missing        the sums leave out the last element of a row
///   previous_row_statistics     each row uses the statistics of the row before it
///   gamma_not_centred           1 is not added to a zero-centred gamma
///   subnormals_flushed          subnormal inputs, products and results become zero
[[nodiscard]] std::span<const OpFault> norm_forward_faults() noexcept;

/// Faults of a backward pass that both normalisations can have.
///   projection_missing          dx lacks the component along the normalised row
///   mean_over_n_minus_1         the means over a row divide by n - 1
///   last_element_missing        the sums over a row leave out its last element
///   previous_row_statistics     each row uses the saved statistics of the row before it
///   last_row_missing            the sums over rows leave out the last row
///   bf16_partial_sums           dgamma is summed in BF16 from partial sums of 64 rows
///   gamma_not_centred           1 is not added to a zero-centred gamma
///   subnormals_flushed          subnormal inputs, products and results become zero
///   rsigma_cubed                the component along the row is formed with rsigma^3, which may underflow or overflow
[[nodiscard]] std::span<const OpFault> norm_backward_faults() noexcept;

/// x; 0 if the fault flushes it.
[[nodiscard]] inline float kept(float x, std::string_view fault) {
  return fault == "subnormals_flushed" && std::fabs(x) < std::numeric_limits<float>::min() ? 0.0F : x;
}

/// read_floats, as a device with that fault reads them.
[[nodiscard]] std::vector<float> read_kept(std::span<const PortMemory> ports, std::string_view name,
                                           std::string_view fault);

/// write_floats of what a device with that fault keeps.
void write_kept(std::span<const PortMemory> ports, std::string_view name, std::span<const float> values,
                std::string_view fault);

/// The faults of `shared`, then those of `own`.
[[nodiscard]] std::vector<OpFault> with_own_faults(std::span<const OpFault> shared, std::span<const OpFault> own);

/// gamma' of every column, see op::NormParams.
[[nodiscard]] std::vector<float> norm_factors(std::span<const PortMemory> ports, const op::NormParams& p,
                                              std::string_view fault);

struct RowStatistics {
  float mu = 0;  ///< 0 where rows are not centred
  float rsigma = 0;
};

/// Statistics of one row: the mean first, then squared deviations from it.
[[nodiscard]] RowStatistics row_statistics(std::span<const float> x, float epsilon, bool centred,
                                           std::string_view fault);

/// Statistics of all rows; the fault previous_row_statistics is ignored.
[[nodiscard]] std::vector<RowStatistics> all_row_statistics(std::span<const float> x, const op::NormParams& p,
                                                            bool centred, std::string_view fault);

/// Row whose statistics row i uses.
[[nodiscard]] inline std::size_t statistics_row(std::size_t i, std::string_view fault) {
  return fault == "previous_row_statistics" && i > 0 ? i - 1 : i;
}

}  // namespace numcheck::kernels::sim
