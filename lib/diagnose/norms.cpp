// Hypotheses about the statistics of normalised rows: y = (gamma [+ 1]) r (x - mu) + beta with another mu or r.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "diagnose/hypothesis.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/rmsnorm_fwd.hpp"

namespace numcheck::diagnose {
namespace {

/// A row's statistics, from its elements.
struct RowStatistics {
  double mean = 0;
  double scale = 1;  ///< 1 / sqrt(mean of squares + epsilon)
};

using Variant = RowStatistics (*)(std::span<const double> row, double epsilon, bool centres);

RowStatistics statistics(std::span<const double> row, double epsilon, bool centres, double divisor) {
  RowStatistics found;
  for (const double x : row) {
    found.mean += centres ? x : 0;
  }
  found.mean /= static_cast<double>(row.size());
  double squares = 0;
  for (const double x : row) {
    squares += (x - found.mean) * (x - found.mean);
  }
  found.scale = 1 / std::sqrt(squares / divisor + epsilon);
  return found;
}

RowStatistics bessel(std::span<const double> row, double epsilon, bool centres) {
  return statistics(row, epsilon, centres, static_cast<double>(row.size()) - 1);
}

RowStatistics without_last(std::span<const double> row, double epsilon, bool centres) {
  const auto n = static_cast<double>(row.size());
  RowStatistics found;
  for (const double x : row.first(row.size() - 1)) {
    found.mean += centres ? x / n : 0;
  }
  double squares = 0;
  for (const double x : row.first(row.size() - 1)) {
    squares += (x - found.mean) * (x - found.mean);
  }
  found.scale = 1 / std::sqrt(squares / n + epsilon);
  return found;
}

RowStatistics in_bf16(std::span<const double> row, double epsilon, bool centres) {
  const RowStatistics right = statistics(row, epsilon, centres, static_cast<double>(row.size()));
  return {core::round_to(right.mean, core::Dtype::bf16), core::round_to(right.scale, core::Dtype::bf16)};
}

RowStatistics epsilon_outside(std::span<const double> row, double epsilon, bool centres) {
  const RowStatistics right = statistics(row, 0, centres, static_cast<double>(row.size()));
  return {right.mean, 1 / (1 / right.scale + epsilon)};
}

RowStatistics as_declared_row(std::span<const double> row, double epsilon, bool centres) {
  return statistics(row, epsilon, centres, static_cast<double>(row.size()));
}

RowStatistics of_other_norm(std::span<const double> row, double epsilon, bool centres) {
  return statistics(row, epsilon, !centres, static_cast<double>(row.size()));
}

struct Way {
  std::string_view name, cause, remedy;
  Variant variant;
  std::size_t rows_before = 0;            ///< whose statistics a row gets
  std::optional<bool> of_layernorm = {};  ///< of one of the norms only
};

constexpr std::array kWays = {
    Way{"bessel", "the mean of squares divides by n - 1, not by n",
        "Variances of norms are biased: torch.var(..., unbiased=False), numpy's ddof=0.", &bessel},
    Way{"last_element_left_out", "the sums over each row leave out its last element",
        "Look at the tail of the loop over a row: hidden is not a multiple of what a thread or a vector takes.",
        &without_last},
    Way{"statistics_in_bf16", "mean and 1 / deviation of each row are rounded to BF16",
        "Keep statistics in FP32: autocast and modules that were moved to BF16 as a whole round them.", &in_bf16},
    Way{"epsilon_outside_root", "epsilon is added to the deviation, not to the variance inside the root",
        "Add epsilon before the root, as PyTorch and TransformerEngine do.", &epsilon_outside},
    Way{"rmsnorm_for_layernorm", "the mean is not subtracted: this is RMSNorm", "Compare the same kind of norm.",
        &of_other_norm, 0, true},
    Way{"layernorm_for_rmsnorm", "the mean is subtracted: this is LayerNorm", "Compare the same kind of norm.",
        &of_other_norm, 0, false},
    Way{"statistics_of_row_before", "each row is normalised with the statistics of the row before it",
        "Look at the index of the statistics, and at rows that share a block.", &as_declared_row, 1}};

/// What the two forward norms have in common.
struct Norm {
  op::NormParams p;
  bool centres = false;
};

std::optional<Norm> norm_of(const op::Op& op, const op::Params& params) {
  if (op.name == "layernorm_fwd") {
    return Norm{op::from_params<op::LayernormFwdParams>(params), true};
  }
  if (op.name == "rmsnorm_fwd") {
    return Norm{op::from_params<op::RmsnormFwdParams>(params), false};
  }
  return std::nullopt;
}

/// y, with the statistics of that way. The request may have other parameters than the case: of a second cause.
op::Values normalised(const op::Op& op, const Way& way, const op::ReferenceRequest& request) {
  const Norm norm = *norm_of(op, *request.params);
  const auto find = [&](std::string_view port) { return std::ranges::find(request.inputs, port, &op::Operand::port); };
  const op::Operand &x = *find("x"), &gamma = *find("gamma");
  const auto beta = find("beta");
  const auto rows = static_cast<std::size_t>(norm.p.rows), hidden = static_cast<std::size_t>(norm.p.hidden);
  op::OutputValues y{.port = "y", .value = core::Buffer<double>(rows * hidden)};
  core::parallel_for(rows, [&](std::size_t row) {
    const std::span<const double> own(x.data + row * hidden, hidden);
    const std::size_t from = row < way.rows_before ? row : row - way.rows_before;
    const RowStatistics found = way.variant({x.data + from * hidden, hidden}, norm.p.epsilon, norm.centres);
    for (std::size_t i = 0; i < hidden; ++i) {
      const double factor = gamma.data[i] + (norm.p.zero_centered_gamma ? 1 : 0);
      const double shift = beta == request.inputs.end() ? 0 : beta->data[i];
      y.value[row * hidden + i] = factor * found.scale * (own[i] - found.mean) + shift;
    }
  });
  op::Values values;
  values.outputs.push_back(std::move(y));
  return values;
}

std::vector<Hypothesis> other_statistics(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  const std::optional<Norm> norm = norm_of(*c.op, c.params);
  std::vector<Hypothesis> all;
  if (!norm.has_value() || norm->p.hidden < 2 || evidence.port != "y" || !evidence.sample.all()) {
    return all;
  }
  for (const Way& way : kWays) {
    if (way.of_layernorm.value_or(norm->centres) != norm->centres) {
      continue;
    }
    Trial trial = as_declared(evidence.subject);
    trial.instead = [&op = *c.op, way](const op::ReferenceRequest& request) { return normalised(op, way, request); };
    all.push_back({std::string(way.name), {}, std::string(way.cause), std::string(way.remedy), std::move(trial)});
  }
  return all;
}

/// The scale of each row that the output has; NaN where it tells none.
std::vector<double> scales_of(const Evidence& evidence, const Norm& norm, std::span<const double> x,
                              std::span<const double> gamma, std::span<const double> beta) {
  const auto hidden = static_cast<std::size_t>(norm.p.hidden);
  std::vector<double> scales(static_cast<std::size_t>(norm.p.rows));
  core::parallel_for(scales.size(), [&](std::size_t row) {
    const std::span<const double> own = x.subspan(row * hidden, hidden);
    const double mean = as_declared_row(own, norm.p.epsilon, true).mean;
    double product = 0, square = 0;
    for (std::size_t i = 0; i < hidden; ++i) {
      const double part = (gamma[i] + (norm.p.zero_centered_gamma ? 1 : 0)) * (own[i] - mean);
      product += part * (evidence.delivered[row * hidden + i] - beta[i]);
      square += part * part;
    }
    scales[row] = product / square;
  });
  return scales;
}

/// Whether the variances of rows are off by what mean(x^2) - mean^2 loses in FP32, and by more than a sum of squares of
/// deviations would be.
bool are_of_one_pass(const Norm& norm, std::span<const double> x, std::span<const double> scales) {
  constexpr double kUnit = 0x1p-24;
  const auto hidden = static_cast<std::size_t>(norm.p.hidden);
  const double most = kUnit * std::max(16.0, 2 * std::sqrt(static_cast<double>(hidden)));
  std::size_t off = 0;
  for (std::size_t row = 0; row < scales.size(); ++row) {
    const RowStatistics right = as_declared_row(x.subspan(row * hidden, hidden), norm.p.epsilon, true);
    const double sum = 1 / (right.scale * right.scale), error = 1 / (scales[row] * scales[row]) - sum;
    if (!(std::fabs(error) <= most * (right.mean * right.mean + sum))) {
      return false;
    }
    off += std::fabs(error) > most * sum ? 1 : 0;
  }
  return 2 * off > scales.size();
}

/// LayerNorm from mean(x^2) - mean^2. Which order of summation it was is not known, so that each row's loss is taken from the
/// output.
std::vector<Hypothesis> one_pass_variance(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  const std::optional<Norm> norm = norm_of(*c.op, c.params);
  if (!norm.has_value() || !norm->centres || evidence.port != "y" || !evidence.sample.all() || norm->p.hidden < 2) {
    return {};
  }
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  const auto input = [&](std::string_view port) { return evidence.subject.inputs.of(op::port_named(ports, port)); };
  const prepare::SharedDoubles x = input("x"), gamma = input("gamma"), beta = input("beta");
  auto scales =
      std::make_shared<const std::vector<double>>(scales_of(evidence, *norm, x->span(), gamma->span(), beta->span()));
  if (!are_of_one_pass(*norm, x->span(), *scales)) {
    return {};
  }
  Trial trial = as_declared(evidence.subject);
  trial.then =
      change_of(evidence, [norm = *norm, x, gamma, beta, scales](op::OutputValues& output, op::OutputYardsticks*) {
        const auto hidden = static_cast<std::size_t>(norm.p.hidden);
        core::parallel_for(scales->size(), [&](std::size_t row) {
          const double mean = as_declared_row(x->span().subspan(row * hidden, hidden), norm.p.epsilon, true).mean;
          for (std::size_t i = 0; i < hidden; ++i) {
            const double factor = (*gamma)[i] + (norm.p.zero_centered_gamma ? 1 : 0);
            expect_instead(output, row * hidden + i,
                           factor * (*scales)[row] * ((*x)[row * hidden + i] - mean) + (*beta)[i]);
          }
        });
      });
  return {{.name = "one_pass_variance",
           .family = {},
           .cause =
               "the variance of each row is off by what mean(x^2) - mean^2 loses in FP32, whose terms are large and "
               "nearly equal: it was computed in one pass",
           .remedy = "Sum squares of deviations from the mean in a second pass, or update mean and variance together "
                     "(Welford), as PyTorch and TransformerEngine do.",
           .trial = std::move(trial),
           .is_fitted = true,
           .is_measured = true}};
}

constexpr std::array kRows = {
    CatalogueRow{"one_pass_variance", "LayerNorm whose variance is a small difference of large numbers",
                 &one_pass_variance},
    CatalogueRow{"bessel, last_element_left_out, statistics_in_bf16, epsilon_outside_root, statistics_of_row_before, "
                 "rmsnorm_for_layernorm, layernorm_for_rmsnorm",
                 "norms with other statistics", &other_statistics}};

}  // namespace

std::span<const CatalogueRow> norm_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
