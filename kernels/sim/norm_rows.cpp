#include "kernels/sim/norm_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/codec.hpp"
#include "core/parallel.hpp"

namespace numcheck::kernels::sim {
namespace {

/// The parameters of every normalisation start with rows and hidden.
op::NormParams shape_of(const Call& call) {
  return op::from_params<op::NormParams>(call.c->params);
}

std::string needs_two_columns(const Call& call) {
  return shape_of(call).hidden < 2 ? "a row has only one element" : "";
}

std::string needs_two_rows(const Call& call) {
  return shape_of(call).rows < 2 ? "there is only one row" : "";
}

std::string needs_partial_sums(const Call& call) {
  return shape_of(call).rows <= 64 ? "up to 64 rows make a single partial sum" : "";
}

std::string needs_a_row(const Call& call) {
  return shape_of(call).rows < 1 ? "there are no rows" : "";
}

std::string needs_centred_gamma(const Call& call) {
  return shape_of(call).zero_centered_gamma ? "" : "gamma is not zero-centred";
}

constexpr std::array kForwardFaults = {
    OpFault{{"epsilon_x10", "epsilon is ten times the requested one"}, &needs_a_row},
    OpFault{{"bessel", "the mean of squares divides by n - 1"}, &needs_two_columns},
    OpFault{{"bf16_statistics", "the statistics of a row are rounded to BF16"}, &needs_a_row},
    OpFault{{"last_element_missing", "sums over a row leave out its last element"}, &needs_two_columns},
    OpFault{{"previous_row_statistics", "each row uses the statistics of the row before it"}, &needs_two_rows},
    OpFault{{"gamma_not_centred", "1 is not added to a zero-centred gamma"}, &needs_centred_gamma},
    OpFault{{"subnormals_flushed", "subnormal inputs, products and results become zero"}, &needs_a_row},
};

constexpr std::array kBackwardFaults = {
    OpFault{{"projection_missing", "dx lacks the component along the normalised row"}, &needs_a_row},
    OpFault{{"mean_over_n_minus_1", "the means over a row divide by n - 1"}, &needs_two_columns},
    OpFault{{"last_element_missing", "sums over a row leave out its last element"}, &needs_two_columns},
    OpFault{{"previous_row_statistics", "each row uses the statistics of the row before it"}, &needs_two_rows},
    OpFault{{"last_row_missing", "sums over rows leave out the last row"}, &needs_a_row},
    OpFault{{"bf16_partial_sums", "dgamma is summed in BF16 from partial sums of 64 rows"}, &needs_partial_sums},
    OpFault{{"gamma_not_centred", "1 is not added to a zero-centred gamma"}, &needs_centred_gamma},
    OpFault{{"subnormals_flushed", "subnormal inputs, products and results become zero"}, &needs_a_row},
    OpFault{{"rsigma_cubed", "the component along the row is formed with rsigma^3, which may underflow or overflow"},
            &needs_a_row},
};

float in_bf16(float value) {
  return static_cast<float>(core::round_to(static_cast<double>(value), core::Dtype::bf16));
}

float mean_of_squares(std::span<const float> x, float mu, std::string_view fault) {
  const std::size_t terms = fault == "last_element_missing" ? x.size() - 1 : x.size();
  const float sum = block_sum(terms, [&](std::size_t j) { return (x[j] - mu) * (x[j] - mu); });
  return sum / static_cast<float>(fault == "bessel" ? x.size() - 1 : x.size());
}

}  // namespace

std::span<const OpFault> norm_forward_faults() noexcept {
  return kForwardFaults;
}

std::span<const OpFault> norm_backward_faults() noexcept {
  return kBackwardFaults;
}

std::vector<OpFault> with_own_faults(std::span<const OpFault> shared, std::span<const OpFault> own) {
  std::vector<OpFault> all(shared.begin(), shared.end());
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<float> read_kept(std::span<const PortMemory> ports, std::string_view name, std::string_view fault) {
  std::vector<float> values = read_floats(ports, name);
  std::ranges::transform(values, values.begin(), [fault](float x) { return kept(x, fault); });
  return values;
}

void write_kept(std::span<const PortMemory> ports, std::string_view name, std::span<const float> values,
                std::string_view fault) {
  std::vector<float> left(values.size());
  std::ranges::transform(values, left.begin(), [fault](float x) { return kept(x, fault); });
  write_floats(ports, name, left, fault);
}

std::vector<float> norm_factors(std::span<const PortMemory> ports, const op::NormParams& p, std::string_view fault) {
  std::vector<float> factors = read_kept(ports, "gamma", fault);
  if (!p.zero_centered_gamma || fault == "gamma_not_centred") {
    return factors;
  }
  const core::Dtype format = find_port(ports, "gamma")->port->dtype;
  for (float& factor : factors) {
    factor += 1.0F;
    if (p.gamma_add == "weight") {
      factor = static_cast<float>(core::round_to(static_cast<double>(factor), format));
    }
  }
  return factors;
}

RowStatistics row_statistics(std::span<const float> x, float epsilon, bool centred, std::string_view fault) {
  const float count = static_cast<float>(x.size());
  RowStatistics row;
  if (centred) {
    const std::size_t terms = fault == "last_element_missing" ? x.size() - 1 : x.size();
    row.mu = block_sum(terms, [x](std::size_t j) { return x[j]; }) / count;
  }
  float spread = mean_of_squares(x, row.mu, fault);
  if (fault == "one_pass_variance") {
    spread = std::fmax(0.0F, mean_of_squares(x, 0, fault) - row.mu * row.mu);
  }
  row.rsigma =
      fault == "epsilon_outside_root" ? 1.0F / (std::sqrt(spread) + epsilon) : 1.0F / std::sqrt(spread + epsilon);
  if (fault == "bf16_statistics") {
    row = {in_bf16(row.mu), in_bf16(row.rsigma)};
  }
  return row;
}

std::vector<RowStatistics> all_row_statistics(std::span<const float> x, const op::NormParams& p, bool centred,
                                              std::string_view fault) {
  const auto hidden = static_cast<std::size_t>(p.hidden);
  const float epsilon = static_cast<float>(p.epsilon) * (fault == "epsilon_x10" ? 10.0F : 1.0F);
  std::vector<RowStatistics> rows(static_cast<std::size_t>(p.rows));
  core::parallel_for(rows.size(), [&](std::size_t i) {
    rows[i] = row_statistics(x.subspan(i * hidden, hidden), epsilon, centred, fault);
  });
  return rows;
}

}  // namespace numcheck::kernels::sim
