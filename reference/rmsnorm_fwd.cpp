#include "op/rmsnorm_fwd.hpp"

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
#include "reference/norm_lanes.hpp"
#include "reference/norm_overflow.hpp"
#include "reference/norm_rows.hpp"
#include "reference/references.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

struct Outputs {
  TrackedOutput y;
  TrackedOutput rsigma;
};

struct Problem {
  op::RmsnormFwdParams p;
  op::Operand x;
  op::Operand gamma;
};

template <class Scalar>
void normalise_row(const Problem& problem, std::span<const Scalar> factors, std::size_t i, OpenRows& open,
                   Outputs& out) {
  const bool rounded = problem.p.gamma_order == "hf";
  const std::span<const double> x = row_of(problem.x, i);
  const Scalar rsigma = has_only_infinities(x) ? Scalar(0.0)  // without an error, which that of an infinite sum is not
                                               : row_rsigma(row_mean_square<Scalar>(x), epsilon_of(problem.p));
  const RowRange range = range_of(x, 0, 0);
  open.note(i, range.finite && range.squares_may_overflow);
  out.rsigma.set(i, rsigma);
  for (std::size_t j = 0; j < x.size(); ++j) {
    const Scalar exact = Scalar(x[j]) * rsigma;
    const Scalar product = rounded ? tolerance::rounded_to(exact, problem.x.dtype) : exact;
    const Scalar y = in_any_order(overflowed(product * factors[j]), x[j], tolerance::value_of(rsigma),
                                  tolerance::value_of(factors[j]));
    const bool unknown = x[j] != 0 && tolerance::indeterminate(product, factors[j]);  // 0 stays 0
    out.y.set(i * x.size() + j, unknown ? unchecked(y) : y);
  }
}

template <class Scalar>
void normalise(const Problem& problem, Outputs& out) {
  OpenRows open(static_cast<std::size_t>(problem.p.rows));
  if constexpr (std::is_same_v<Scalar, tolerance::Flushable>) {
    const std::vector<Scalar> factors = gamma_factors<Scalar>(problem.gamma, problem.p);
    core::parallel_for(open.size(), [&](std::size_t i) { normalise_row<Scalar>(problem, factors, i, open, out); });
  } else {  // lanes have errors, which values alone do not keep
    const auto factors = NormFactors::of(problem.gamma, nullptr, problem.p);
    const NormLanes lanes(problem.x, factors, epsilon_of(problem.p), std::is_same_v<Scalar, double>);
    lanes.for_each_row(
        [&](std::size_t i, const NormLanes::Statistics& row) {
          out.rsigma.set(i, row.rsigma);
          return problem.p.gamma_order != "hf" && lanes.set(i, row, out.y);  // hf rounds a product
        },
        [&](std::size_t i) { normalise_row<Scalar>(problem, factors->template as<Scalar>(), i, open, out); });
  }
  open.leave(1, out.rsigma);
  open.leave(static_cast<std::size_t>(problem.p.hidden), out.y);
}

/// True if an intermediate result of y is rounded to fewer bits than FP32's.
bool rounds_product(const Problem& problem) {
  return problem.p.gamma_order == "hf" && core::dtype_info(problem.x.dtype).storage_bytes < 4;
}

/// The result of the formula without intermediate roundings.
void keep_ideal(Problem problem, Outputs& out) {
  op::OutputValues& y = out.y.values();
  y.ideal_note = rounds_product(problem) ? rounded_product_note(problem.x.dtype) : "";
  if (rounds_gamma(problem.p, problem.gamma.dtype)) {
    y.ideal_note += (y.ideal_note.empty() ? "" : "; ") + rounded_gamma_note(problem.gamma.dtype);
  }
  problem.p.gamma_add = "fp32";
  problem.p.gamma_order = "te";
  Outputs exact{{"y", problem.x.elements(), true}, {"rsigma", static_cast<std::size_t>(problem.p.rows), true}};
  normalise<double>(problem, exact);
  y.ideal = std::move(exact.y.values().value);
}

template <class Scalar>
op::Values all_values(const op::ReferenceRequest& request) {
  const Problem problem{op::from_params<op::RmsnormFwdParams>(*request.params), op::operand_named(request.inputs, "x"),
                        op::operand_named(request.inputs, "gamma")};
  const auto rows = static_cast<std::size_t>(problem.p.rows);
  Outputs out{{"y", problem.x.elements(), request.values_only}, {"rsigma", rows, request.values_only}};
  normalise<Scalar>(problem, out);
  if (!request.values_only && (rounds_product(problem) || rounds_gamma(problem.p, problem.gamma.dtype))) {
    keep_ideal(problem, out);
  }
  op::Values result;
  result.outputs.push_back(std::move(out.y).take());
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
  const auto p = op::from_params<op::RmsnormFwdParams>(*request.params);
  return settle_rows(request, p, p.gamma_order == "hf");
}

std::vector<op::Finding> findings(const op::FindingRequest& request) {
  const auto p = op::from_params<op::RmsnormFwdParams>(*request.params);
  return norm_findings(request, p, false);
}

std::unique_ptr<op::RowFindings> row_findings(const op::Params& params, const op::Mode& /*mode*/) {
  const auto p = op::from_params<op::RmsnormFwdParams>(params);
  return norm_row_findings(p, p.rows, false);
}

std::vector<op::Finding> diagnose(const op::FindingRequest& request) {
  std::vector<op::Finding> findings = diagnose_rmsnorm(request);
  const auto p = op::from_params<op::RmsnormFwdParams>(*request.params);
  FlushedNorm flushed(request, p, p.gamma_order == "hf");
  explain_flushes(request, &all_values<Tracked>, &losses, &flushed, findings);
  return findings;
}

}  // namespace

op::Reference rmsnorm_fwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.diagnose = &diagnose;
  reference.settle = &settle;
  reference.findings = &findings;
  reference.row_findings = &row_findings;
  reference.gates = norm_gates();
  reference.mistakes = &rmsnorm_fwd_mistakes;
  reference.on_rows = &on_rows<op::RmsnormFwdParams, &op::RmsnormFwdParams::rows>;
  reference.version = "rmsnorm_fwd-6";
  return reference;
}

}  // namespace numcheck::reference
