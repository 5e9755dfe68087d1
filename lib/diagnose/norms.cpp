// Hypotheses about the statistics of normalised rows: y = (gamma [+ 1]) r (x - mu) + beta with another mu or r.
#include <array>
#include <cmath>
#include <functional>
#include <utility>

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

struct Way {
  std::string_view name, cause, remedy;
  Variant variant;
  std::size_t rows_before = 0;  ///< whose statistics a row gets
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
    Way{"statistics_of_row_before", "each row is normalised with the statistics of the row before it",
        "Look at the index of the statistics, and at rows that share a block.", &as_declared_row, 1}};

/// What the two forward norms have in common.
struct Norm {
  op::NormParams p;
  bool centres = false;
  prepare::SharedDoubles x, gamma, beta;
};

std::optional<Norm> norm_of(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  const plan::Case& c = subject.c;
  Norm norm;
  if (evidence.port != "y" || !evidence.sample.all()) {
    return std::nullopt;
  }
  if (c.op->name == "layernorm_fwd") {
    norm.p = op::from_params<op::LayernormFwdParams>(c.params);
    norm.centres = true;
  } else if (c.op->name == "rmsnorm_fwd") {
    norm.p = op::from_params<op::RmsnormFwdParams>(c.params);
  } else {
    return std::nullopt;
  }
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  norm.x = subject.inputs.of(op::port_named(ports, "x"));
  norm.gamma = subject.inputs.of(op::port_named(ports, "gamma"));
  const op::Port* beta = op::find_port(ports, "beta");
  norm.beta = beta == nullptr ? nullptr : subject.inputs.of(*beta);
  return norm.p.hidden > 1 ? std::optional(norm) : std::nullopt;
}

std::vector<double> normalised(const Norm& norm, const Way& way) {
  const auto rows = static_cast<std::size_t>(norm.p.rows), hidden = static_cast<std::size_t>(norm.p.hidden);
  std::vector<double> y(rows * hidden);
  core::parallel_for(rows, [&](std::size_t row) {
    const std::span<const double> x = norm.x->span().subspan(row * hidden, hidden);
    const std::size_t from = row < way.rows_before ? row : row - way.rows_before;
    const RowStatistics found =
        way.variant(norm.x->span().subspan(from * hidden, hidden), norm.p.epsilon, norm.centres);
    for (std::size_t i = 0; i < hidden; ++i) {
      const double gamma = (*norm.gamma)[i] + (norm.p.zero_centered_gamma ? 1 : 0);
      y[row * hidden + i] = gamma * found.scale * (x[i] - found.mean) + (norm.beta == nullptr ? 0 : (*norm.beta)[i]);
    }
  });
  return y;
}

std::vector<Hypothesis> other_statistics(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  const std::optional<Norm> norm = norm_of(evidence);
  if (!norm.has_value()) {
    return all;
  }
  for (const Way& way : kWays) {
    Trial trial = as_declared(evidence.subject);
    trial.then = change_of(evidence, [norm = *norm, way](op::OutputValues& output, op::OutputYardsticks*) {
      std::ranges::copy(normalised(norm, way), output.value.data());
    });
    all.push_back({std::string(way.name), {}, std::string(way.cause), std::string(way.remedy), std::move(trial)});
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"bessel, last_element_left_out, statistics_in_bf16, epsilon_outside_root, statistics_of_row_before",
                 "norms with other statistics", &other_statistics}};

}  // namespace

std::span<const CatalogueRow> norm_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
