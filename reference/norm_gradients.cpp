#include "reference/norm_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/parallel.hpp"
#include "reference/norm_findings.hpp"
#include "reference/norm_rows.hpp"
#include "reference/open_elements.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kColumns = 32;  ///< per task: four cache lines of a row

NormGradient gradient_of(std::span<const op::Operand> inputs) {
  return {&op::operand_named(inputs, "dz"),
          &op::operand_named(inputs, "x"),
          op::find_operand(inputs, "add"),
          {op::find_operand(inputs, "mu"), &op::operand_named(inputs, "rsigma")}};
}

template <class Scalar>
void compute_dx(const NormGradient& g, std::span<const Scalar> factors, TrackedOutput& dx) {
  const auto hidden = static_cast<std::size_t>(g.x->cols);
  OpenElements open;
  core::parallel_for(static_cast<std::size_t>(g.x->rows), [&](std::size_t i) {
    const auto put = [&](std::size_t j, const Scalar& value, bool may_overflow, double terms) {
      dx.set(i * hidden + j, value);
      dx.set_terms(i * hidden + j, terms);
      if (may_overflow) {
        open.note(i * hidden + j);
      }
    };
    const bool infinite = !input_gradient<Scalar>(g, factors, i, put);
    for (std::size_t j = 0; infinite && j < hidden; ++j) {
      dx.set_undetermined(i * hidden + j, 0);
    }
  });
  open.leave(dx);
}

/// An element of dgamma or dbeta: a sum over a column.
template <class Scalar>
void set_sum(TrackedOutput& output, std::size_t j, const Scalar& sum, bool may_overflow) {
  output.set(j, may_overflow && !std::isfinite(tolerance::value_of(sum)) ? unchecked(sum) : sum);
}

template <class Scalar>
void compute_weights(const NormGradient& g, TrackedOutput& dgamma, TrackedOutput& dbeta) {
  const auto hidden = static_cast<std::size_t>(g.x->cols);
  OpenElements open_gamma, open_beta;
  core::parallel_chunks(hidden, kColumns, [&](std::size_t, std::size_t begin, std::size_t end) {
    const ColumnSums<Scalar> sums = weight_gradients<Scalar>(g, begin, end - begin);
    for (std::size_t j = begin; j < end; ++j) {
      const Reach& reach = sums.gamma_reach[j - begin];
      const bool beta_may_overflow = sums.beta_reach[j - begin].may_overflow();
      dgamma.set_terms(j, sums.gamma_terms[j - begin]);
      dbeta.set_terms(j, sums.beta_terms[j - begin]);
      if (reach.may_overflow()) {
        open_gamma.note(j);
      }
      if (beta_may_overflow) {
        open_beta.note(j);
      }
      if (reach.infinite()) {
        dgamma.set_undetermined(j, 0);
      } else {
        set_sum(dgamma, j, sums.gamma[j - begin].result(), reach.may_overflow());
      }
      set_sum(dbeta, j, sums.beta[j - begin].result(), beta_may_overflow);
    }
  });
  open_gamma.leave(dgamma);
  open_beta.leave(dbeta);
}

template <class Scalar>
op::Values gradients(const op::ReferenceRequest& request, const op::NormParams& p) {
  const NormGradient g = gradient_of(request.inputs);
  const op::Operand& gamma = op::operand_named(request.inputs, "gamma");
  const auto hidden = static_cast<std::size_t>(p.hidden);
  TrackedOutput dx("dx", g.x->elements(), request.values_only);
  TrackedOutput dgamma("dgamma", hidden, request.values_only);
  TrackedOutput dbeta("dbeta", hidden, request.values_only);
  const auto rows = static_cast<std::size_t>(p.rows);
  dx.keep_terms(hidden);
  dgamma.keep_terms(rows);
  dbeta.keep_terms(rows);
  compute_dx<Scalar>(g, gamma_factors<Scalar>(gamma, p), dx);
  compute_weights<Scalar>(g, dgamma, dbeta);
  if (!request.values_only && rounds_gamma(p, gamma.dtype)) {
    op::NormParams exact = p;
    exact.gamma_add = "fp32";
    TrackedOutput ideal("dx", g.x->elements(), true);
    compute_dx<double>(g, gamma_factors<double>(gamma, exact), ideal);
    dx.values().ideal = std::move(ideal.values().value);
    dx.values().ideal_note = rounded_gamma_note(gamma.dtype);
  }
  dgamma.values().reduction = std::max(1.0, static_cast<double>(p.rows));
  dbeta.values().reduction = dgamma.values().reduction;
  op::Values result;
  result.outputs.push_back(std::move(dx).take());
  result.outputs.push_back(std::move(dgamma).take());
  if (g.saved.mu != nullptr) {
    result.outputs.push_back(std::move(dbeta).take());
  }
  return result;
}

/// Whether an overflow may have made NaN of an element whose FP32 arithmetic may overflow.
class OverflowedToNan {
 public:
  OverflowedToNan(const op::FindingRequest& request, const op::NormParams& p)
      : g_(gradient_of(request.inputs)),
        factors_(gamma_factors<double>(op::operand_named(request.inputs, "gamma"), p)),
        hidden_(static_cast<std::size_t>(p.hidden)),
        rows_(static_cast<std::size_t>(p.rows)),
        has_finite_(rows_) {}

  /// An element of dx. Where a sum over its row has overflowed, no element of the row is finite. Otherwise NaN takes two
  /// infinities of its own.
  [[nodiscard]] bool in_row(std::size_t at, std::span<const double> dx) {
    const std::size_t i = at / hidden_, j = at % hidden_;
    if (!has_finite_[i]) {  // many elements of a row may ask
      has_finite_[i] = std::ranges::any_of(dx.subspan(i * hidden_, hidden_), [](double x) { return std::isfinite(x); });
    }
    if (!*has_finite_[i]) {
      return true;
    }
    if (g_.add != nullptr && !std::isfinite(row_of(*g_.add, i)[j])) {
      return true;
    }
    const double factor = std::fabs(factors_[j]), dz = std::fabs(row_of(*g_.dz, i)[j]);
    Reach own;
    own.pass(std::max({factor, dz, factor * dz}) * g_.saved.rsigma->data[i]);
    return own.may_overflow();
  }
  /// An element of dgamma, or of dbeta.
  [[nodiscard]] bool in_column(std::size_t j, bool is_beta) const {
    Reach positive, negative, factors;
    for (std::size_t i = 0; i < rows_; ++i) {
      const double dz = row_of(*g_.dz, i)[j], x = row_of(*g_.x, i)[j];
      const double term = is_beta ? dz : dz * normalised<double>(g_.saved, i, x);
      Reach& sum = term > 0 ? positive : negative;
      sum.add(std::fabs(term));
      if (!is_beta) {
        const double distance = largest_distance(g_.saved, i, x);
        sum.pass(distance * std::fabs(dz));
        factors.pass(std::max(distance, std::fabs(dz)) * (1 + g_.saved.rsigma->data[i]));
      }
    }
    const auto may_be_infinite = [](const Reach& sum) { return sum.may_overflow() || sum.infinite(); };
    return factors.may_overflow() || (may_be_infinite(positive) && may_be_infinite(negative));
  }

 private:
  NormGradient g_;
  std::vector<double> factors_;
  std::size_t hidden_, rows_;
  std::vector<std::optional<bool>> has_finite_;  ///< by row of dx
};

}  // namespace

std::vector<op::Settled> settle_gradients(const op::FindingRequest& request, const op::NormParams& p) {
  std::vector<op::Settled> all = settle_overflows(request);
  OverflowedToNan overflowed(request, p);
  for (op::Settled& settled : all) {
    const op::OutputValues& expected = request.expected->outputs[settled.output];
    const auto& delivered = *std::ranges::find(request.outputs, expected.port, &op::Delivered::port);
    const double y = expected.value[settled.element];
    const bool known = std::isfinite(y) && std::isfinite(expected.deviation[settled.element]);
    if (!known || !std::isnan(delivered.value[settled.element])) {
      continue;
    }
    const bool explained = expected.port == "dx" ? overflowed.in_row(settled.element, delivered.value)
                                                 : overflowed.in_column(settled.element, expected.port == "dbeta");
    if (!explained) {
      settled = {.output = settled.output, .element = settled.element, .asked = true, .value = y};
    }
  }
  return all;
}

op::Values norm_gradients(const op::ReferenceRequest& request, const op::NormParams& p) {
  return request.values_only ? gradients<double>(request, p) : gradients<Tracked>(request, p);
}

op::Values lost_gradients(const op::ReferenceRequest& request, const op::NormParams& p) {
  return gradients<tolerance::Flushable>(request, p);
}

void derive_statistics(const op::DeriveRequest& request, const op::NormParams& p, bool centred,
                       std::span<double> values) {
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const bool is_mean = request.port->name == "mu";
  core::parallel_for(values.size(), [&](std::size_t i) {
    const std::span<const double> row = row_of(x, i);
    const double mean = centred ? row_mean<double>(row) : 0;
    if (is_mean) {
      values[i] = mean;
    } else {
      values[i] = row_rsigma(centred ? row_variance<double>(row, mean) : row_mean_square<double>(row), epsilon_of(p));
    }
  });
}

}  // namespace numcheck::reference
