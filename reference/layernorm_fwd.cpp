#include "op/layernorm_fwd.hpp"

#include <cmath>
#include <span>
#include <type_traits>
#include <vector>

#include "core/parallel.hpp"
#include "reference/flushed_norms.hpp"
#include "reference/flushed_subnormals.hpp"
#include "reference/independent_rows.hpp"
#include "reference/mistakes.hpp"
#include "reference/norm_diagnosis.hpp"
#include "reference/norm_findings.hpp"
#include "reference/norm_formula.hpp"
#include "reference/norm_lanes.hpp"
#include "reference/norm_overflow.hpp"
#include "reference/norm_rows.hpp"
#include "reference/references.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

struct Outputs {
  TrackedOutput y;
  TrackedOutput mu;
  TrackedOutput rsigma;
};

struct Problem {
  op::LayernormFwdParams p;
  op::Operand x;
  op::Operand gamma;
  op::Operand beta;
};

/// Rows whose FP32 sums may overflow.
struct Open {
  OpenRows rows, means;
};

template <class Scalar>
void normalise_row(const Problem& problem, std::span<const Scalar> factors, std::size_t i, Open& open, Outputs& out) {
  const std::span<const double> x = row_of(problem.x, i);
  const Scalar mean = row_mean<Scalar>(x);
  const Scalar rsigma = row_rsigma(row_variance<Scalar>(x, mean), epsilon_of(problem.p));
  const RowRange range = range_of(x, tolerance::value_of(mean), bound_of(mean));
  const double absolute = mean_magnitude(x);
  out.mu.set_terms(i, absolute);
  if (!range.finite && range.sum_may_overflow) {  // an infinity may meet one from an overflow
    out.mu.set_undetermined(i, 0);
  } else {
    out.mu.set(i, mean);
  }
  // With epsilon = 0, the variance of equal elements is 0, or the square of the mean's rounding error.
  const bool variance_is_error =
      std::isinf(tolerance::value_of(rsigma)) && bound_of(mean) > 0 && epsilon_of(problem.p) == 0;
  open.means.note(i, range.finite && range.sum_may_overflow);
  open.rows.note(i, range.finite && (range.sum_may_overflow || range.squares_may_overflow));
  if (range.finite && variance_is_error) {
    out.rsigma.set_undetermined(i, 0);
    for (std::size_t j = 0; j < x.size(); ++j) {
      out.y.set_undetermined(i * x.size() + j, 0);
    }
    return;
  }
  out.rsigma.set(i, rsigma);
  for (std::size_t j = 0; j < x.size(); ++j) {
    const Scalar normalised = normalised_element(Scalar(x[j]), mean, rsigma);
    const Scalar y = multiplied_and_added(normalised, factors[j], Scalar(problem.beta.data[j]));
    out.y.set(i * x.size() + j, in_any_order(y, x[j] - tolerance::value_of(mean), tolerance::value_of(rsigma),
                                             tolerance::value_of(factors[j])));
    out.y.set_terms(i * x.size() + j, std::fabs(tolerance::value_of(factors[j]) * tolerance::value_of(rsigma)) *
                                              (std::fabs(x[j]) + absolute) +
                                          std::fabs(problem.beta.data[j]));
  }
}

template <class Scalar>
void normalise(const Problem& problem, Outputs& out) {
  const auto rows = static_cast<std::size_t>(problem.p.rows);
  Open open{OpenRows(rows), OpenRows(rows)};
  if constexpr (std::is_same_v<Scalar, tolerance::Flushable>) {
    const std::vector<Scalar> factors = gamma_factors<Scalar>(problem.gamma, problem.p);
    core::parallel_for(rows, [&](std::size_t i) { normalise_row<Scalar>(problem, factors, i, open, out); });
  } else {  // lanes have errors, which values alone do not keep
    const auto factors = NormFactors::of(problem.gamma, &problem.beta, problem.p);
    const NormLanes lanes(problem.x, factors, epsilon_of(problem.p), std::is_same_v<Scalar, double>);
    lanes.for_each_row(
        [&](std::size_t i, const NormLanes::Statistics& row) {
          out.mu.set_terms(i, row.absolute);
          out.mu.set(i, row.mean);
          out.rsigma.set(i, row.rsigma);
          return lanes.set(i, row, out.y);
        },
        [&](std::size_t i) { normalise_row<Scalar>(problem, factors->template as<Scalar>(), i, open, out); });
  }
  open.means.leave(1, out.mu);
  open.rows.leave(1, out.rsigma);
  open.rows.leave(static_cast<std::size_t>(problem.p.hidden), out.y);
}

/// The result of gamma + 1 without rounding.
void keep_ideal(Problem problem, Outputs& out) {
  problem.p.gamma_add = "fp32";
  Outputs exact{{"y", problem.x.elements(), true},
                {"mu", static_cast<std::size_t>(problem.p.rows), true},
                {"rsigma", static_cast<std::size_t>(problem.p.rows), true}};
  normalise<double>(problem, exact);
  out.y.values().ideal = std::move(exact.y.values().value);
  out.y.values().ideal_note = rounded_gamma_note(problem.gamma.dtype);
}

template <class Scalar>
op::Values all_values(const op::ReferenceRequest& request) {
  const Problem problem{op::from_params<op::LayernormFwdParams>(*request.params),
                        op::operand_named(request.inputs, "x"), op::operand_named(request.inputs, "gamma"),
                        op::operand_named(request.inputs, "beta")};
  const auto rows = static_cast<std::size_t>(problem.p.rows);
  Outputs out{{"y", problem.x.elements(), request.values_only},
              {"mu", rows, request.values_only},
              {"rsigma", rows, request.values_only}};
  out.y.keep_terms(static_cast<std::size_t>(problem.p.hidden));
  out.mu.keep_terms(static_cast<std::size_t>(problem.p.hidden));
  normalise<Scalar>(problem, out);
  if (!request.values_only && rounds_gamma(problem.p, problem.gamma.dtype)) {
    keep_ideal(problem, out);
  }
  op::Values result;
  result.outputs.push_back(std::move(out.y).take());
  result.outputs.push_back(std::move(out.mu).take());
  result.outputs.push_back(std::move(out.rsigma).take());
  return result;
}

op::Values values(const op::ReferenceRequest& request) {
  return request.values_only ? all_values<double>(request) : all_values<Tracked>(request);
}

op::Values losses(const op::ReferenceRequest& request) {
  return all_values<tolerance::Flushable>(request);
}

std::vector<op::Settled> settle(const op::FindingRequest& request) {
  return settle_rows(request, op::from_params<op::LayernormFwdParams>(*request.params));
}

std::vector<op::Finding> findings(const op::FindingRequest& request) {
  const auto p = op::from_params<op::LayernormFwdParams>(*request.params);
  return norm_findings(request, p, true);
}

std::unique_ptr<op::RowFindings> row_findings(const op::Params& params, const op::Mode& /*mode*/) {
  const auto p = op::from_params<op::LayernormFwdParams>(params);
  return norm_row_findings(p, p.rows, true);
}

std::vector<op::Finding> diagnose(const op::FindingRequest& request) {
  std::vector<op::Finding> findings = diagnose_layernorm(request);
  FlushedNorm flushed(request, op::from_params<op::LayernormFwdParams>(*request.params));
  explain_flushes(request, &all_values<Tracked>, &losses, &flushed, findings);
  return findings;
}

}  // namespace

op::Reference layernorm_fwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.settle = &settle;
  reference.findings = &findings;
  reference.row_findings = &row_findings;
  reference.diagnose = &diagnose;
  reference.gates = norm_gates();
  reference.mistakes = &layernorm_fwd_mistakes;
  reference.on_rows = &on_rows<op::LayernormFwdParams, &op::LayernormFwdParams::rows>;
  reference.version = "layernorm_fwd-8";
  return reference;
}

}  // namespace numcheck::reference
