#include "reference/norm_overflow.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "reference/norm_rows.hpp"

namespace numcheck::reference {
namespace {

/// An output: what is expected of it, and what the device has left.
struct Output {
  std::size_t index;
  const op::OutputValues& expected;
  std::span<const double> got;
};

std::vector<Output> outputs_of(const op::FindingRequest& request) {
  std::vector<Output> all;
  for (std::size_t i = 0; i < request.expected->outputs.size(); ++i) {
    const op::OutputValues& expected = request.expected->outputs[i];
    const auto found = std::ranges::find(request.outputs, expected.port, &op::Delivered::port);
    if (found != request.outputs.end()) {
      all.push_back({i, expected, found->value});
    }
  }
  return all;
}

const Output* find_output(const std::vector<Output>& outputs, std::string_view port) {
  const auto found =
      std::ranges::find_if(outputs, [port](const Output& output) { return output.expected.port == port; });
  return found == outputs.end() ? nullptr : &*found;
}

bool is_open(const op::OutputValues& output, std::size_t element) {
  const auto at = static_cast<std::int64_t>(element);
  const auto next = std::ranges::upper_bound(output.open, at, {}, &op::OutputValues::Range::begin);
  return next != output.open.begin() && at < std::prev(next)->end;
}

/// The outputs of a forward pass; RMSNorm has no mu.
struct Outputs {
  const Output* mu;
  const Output& rsigma;
  const Output& y;

  [[nodiscard]] double mean(std::size_t row) const { return mu == nullptr ? 0 : mu->got[row]; }
  [[nodiscard]] bool sum_overflowed(std::size_t row) const {
    return mu != nullptr && !std::isfinite(mu->got[row]) && is_open(mu->expected, row);
  }
  /// E x^2 - mu^2 was infinity less infinity.
  [[nodiscard]] bool variance_is_nan(std::size_t row) const {
    constexpr double kRoot = 0x1p62;  // its square is FP32's largest number but for a reserve
    return mu != nullptr && std::isnan(rsigma.got[row]) && std::fabs(mean(row)) >= kRoot;
  }
};

/// y where rsigma is 0. An x - mu that overflows makes NaN, unless it is written as x rsigma - mu rsigma.
op::Settled vanished(const Outputs& outputs, std::size_t at, double centred, double factor, double beta) {
  constexpr double kLargest = 0x1p127;
  if (!(std::fabs(centred) < kLargest)) {
    return {outputs.y.index, at, false};
  }
  const Tracked y = Tracked(0 * factor) + Tracked(beta);
  return {outputs.y.index, at, true, y.y, y.b, std::sqrt(y.v)};
}

/// What rows are normalised with.
struct NormInputs {
  const op::Operand& x;
  const op::Operand* beta;  ///< null: RMSNorm, which has none
  std::vector<double> factors;
  double epsilon;
  bool rounds_product;  ///< x rsigma is rounded to x's format before it is multiplied by gamma'
};

/// Whether an element of y is nearer to what is expected of it than to what is left where rsigma is 0: threads that merge a row's
/// sums in different orders disagree on what overflows. It is judged by the one that it is nearer to.
bool is_as_expected(const Output& y, const op::Settled& vanished) {
  const std::size_t at = vanished.element;
  const double got = y.got[at], expected = y.expected.value[at];
  const bool is_known = !y.expected.magnitude.empty() &&
                        static_cast<double>(y.expected.magnitude[at]) < std::fabs(expected) &&
                        std::isfinite(y.expected.deviation[at]);
  return vanished.asked && is_known && std::fabs(got - expected) < std::fabs(got - vanished.value);
}

/// Whether anything is expected of an element.
bool is_known(const op::OutputValues& output, std::size_t element) {
  return output.magnitude.empty() || (output.magnitude[element] < static_cast<float>(TrackedOutput::kMaxBound) &&
                                      std::isfinite(output.deviation[element]));
}

struct Statistics {
  Tracked mean = 0.0, rsigma = 0.0;
};

/// Of a row that a kernel has summed without an overflow, because it divides first, scales, or merges means: they are those of the
/// row times 2^-80, whose squares are far from FP32's limits, too.
Statistics without_overflow(std::span<const double> row, bool centred, double epsilon) {
  constexpr double kScale = 0x1p-80;
  const auto times = [](const Tracked& x, double power) {
    return Tracked(x.y * power, x.b * power, x.v * power * power);
  };
  std::vector<double> scaled(row.begin(), row.end());
  std::ranges::for_each(scaled, [](double& x) { x *= kScale; });
  const Tracked mean = centred ? row_mean<Tracked>(scaled) : Tracked(0.0);
  const Tracked spread = centred ? row_variance<Tracked>(scaled, mean) : row_mean_square<Tracked>(scaled);
  return {times(mean, 1 / kScale), times(row_rsigma(spread, epsilon * kScale * kScale), kScale)};
}

/// What is expected of such a row, as far as `outputs` say nothing.
void add_without_overflow(const Outputs& outputs, std::size_t i, const NormInputs& inputs,
                          std::vector<op::Settled>& settled) {
  const std::span<const double> x = row_of(inputs.x, i);
  const Statistics row = without_overflow(x, outputs.mu != nullptr, inputs.epsilon);
  const auto add = [&](const Output& output, std::size_t at, const Tracked& y) {
    if (!is_known(output.expected, at) && std::isfinite(y.b)) {
      settled.push_back({output.index, at, true, y.y, y.b, std::sqrt(y.v)});
    }
  };
  add(outputs.rsigma, i, row.rsigma);
  for (std::size_t j = 0; j < x.size(); ++j) {
    const Tracked normalised = normalised_element(Tracked(x[j]), row.mean, row.rsigma);
    const Tracked product = inputs.rounds_product ? rounded_to(normalised, inputs.x.dtype) : normalised;
    const Tracked shift = inputs.beta == nullptr ? Tracked(0.0) : Tracked(inputs.beta->data[j]);
    add(outputs.y, i * x.size() + j, multiplied_and_added(product, Tracked(inputs.factors[j]), shift));
  }
}

}  // namespace

std::vector<op::Settled> settle_rows(const op::FindingRequest& request, const op::NormParams& p, bool rounds_product) {
  const std::vector<Output> all = outputs_of(request);
  const Output *mu = find_output(all, "mu"), *rsigma = find_output(all, "rsigma"), *y = find_output(all, "y");
  if (all.size() != request.expected->outputs.size() || rsigma == nullptr || y == nullptr) {
    return {};  // some were not given: what is there does not show it
  }
  const Outputs outputs{mu, *rsigma, *y};
  const NormInputs inputs{.x = op::operand_named(request.inputs, "x"),
                          .beta = op::find_operand(request.inputs, "beta"),
                          .factors = gamma_factors<double>(op::operand_named(request.inputs, "gamma"), p),
                          .epsilon = epsilon_of(p),
                          .rounds_product = rounds_product};
  std::vector<op::Settled> settled;
  for (const op::OutputValues::Range& open : outputs.rsigma.expected.open) {
    const auto i = static_cast<std::size_t>(open.begin);
    const bool lost = outputs.sum_overflowed(i) || outputs.variance_is_nan(i);
    if (!lost && outputs.rsigma.got[i] != 0) {
      add_without_overflow(outputs, i, inputs, settled);
      continue;
    }
    settled.push_back({outputs.rsigma.index, i, !lost});
    if (outputs.sum_overflowed(i)) {
      settled.push_back({outputs.mu->index, i, false});
    }
    const std::span<const double> row = row_of(inputs.x, i);
    for (std::size_t j = 0; j < row.size(); ++j) {
      const std::size_t at = i * row.size() + j;
      const op::Settled zero = lost ? op::Settled{outputs.y.index, at, false}
                                    : vanished(outputs, at, row[j] - outputs.mean(i), inputs.factors[j],
                                               inputs.beta == nullptr ? 0 : inputs.beta->data[j]);
      if (!is_as_expected(outputs.y, zero)) {
        settled.push_back(zero);
      }
    }
  }
  return settled;
}

}  // namespace numcheck::reference
