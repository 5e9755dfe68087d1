#include "reference/norm_diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "op/layernorm_fwd.hpp"
#include "reference/cause.hpp"
#include "reference/norm_rows.hpp"

namespace numcheck::reference {

bool has_only_infinities(std::span<const double> row) {
  return std::ranges::any_of(row, [](double x) { return std::isinf(x); }) &&
         std::ranges::none_of(row, [](double x) { return std::isnan(x); });
}

std::vector<op::Finding> diagnose_layernorm(const op::FindingRequest& request) {
  const auto got = std::ranges::find(request.outputs, "rsigma", &op::Delivered::port);
  const auto expected = std::ranges::find(request.expected->outputs, "rsigma", &op::OutputValues::port);
  if (got == request.outputs.end() || expected == request.expected->outputs.end()) {
    return {};
  }
  constexpr double kRoundings = 8 * tolerance::kUnit32;
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const std::size_t rows = got->value.size(), columns = x.elements() / std::max<std::size_t>(rows, 1);
  const double of_zero = row_rsigma(0.0, epsilon_of(op::from_params<op::LayernormFwdParams>(*request.params)));
  double wrong = 0, infinite = 0, lone = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    if (are_other_kinds(got->value[i], expected->value[i])) {
      wrong += 1;
      infinite += got->value[i] == 0 && has_only_infinities({x.data + i * columns, columns}) ? 1 : 0;
      lone += columns == 1 && std::fabs(got->value[i] - of_zero) <= kRoundings * of_zero ? 1 : 0;
    }
  }
  std::vector<op::Finding> findings;
  const auto add = [&](double explained, const op::KnownCause& known, const char* cause) {
    if (explained / wrong >= kLeastExplained) {
      findings.push_back(
          cause_finding(known, "rsigma", explained / wrong, cause, "what is wrong", op::Finding::About::pattern));
    }
  };
  add(infinite, op::kInfiniteRows, "rows with infinities have a reciprocal deviation of 0");
  add(lone, op::kLoneElements, "rows of one element have no deviation, even of infinities and NaN");
  return findings;
}

std::vector<op::Finding> diagnose_rmsnorm(const op::FindingRequest& request) {
  const op::Operand& x = op::operand_named(request.inputs, "x");
  std::vector<op::Finding> findings;
  for (const op::Delivered& got : request.outputs) {
    const auto expected = std::ranges::find(request.expected->outputs, got.port, &op::OutputValues::port);
    if (expected == request.expected->outputs.end() || expected->value.size() != got.value.size()) {
      continue;
    }
    const auto columns = static_cast<std::size_t>(x.cols), rows = static_cast<std::size_t>(x.rows);
    const std::size_t width = got.value.size() / rows;
    double wrong = 0, explained = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      const std::span<const double> row = got.value.subspan(i * width, width);
      const bool lost = has_only_infinities({x.data + i * columns, columns}) &&
                        std::ranges::all_of(row, [](double value) { return std::isnan(value); });
      for (std::size_t j = 0; j < width; ++j) {
        const double y = expected->value[i * width + j];
        const bool broken = are_other_kinds(y, row[j]);
        wrong += broken ? 1 : 0;
        explained += broken && lost ? 1 : 0;
      }
    }
    if (explained / wrong >= kLeastExplained) {
      findings.push_back(cause_finding(op::kRowsOfInfinitiesNan, got.port, explained / wrong,
                                       "rows with infinities are NaN as a whole", "what is wrong",
                                       op::Finding::About::pattern));
    }
  }
  return findings;
}

void explain_cubes(const op::FindingRequest& request, std::vector<op::Finding>& findings) {
  const auto got = std::ranges::find(request.outputs, "dx", &op::Delivered::port);
  const auto expected = std::ranges::find(request.expected->outputs, "dx", &op::OutputValues::port);
  const op::Operand& rsigma = op::operand_named(request.inputs, "rsigma");
  const std::size_t rows = rsigma.elements();
  if (got == request.outputs.end() || expected == request.expected->outputs.end() || rows == 0 ||
      expected->value.size() != got->value.size()) {
    return;
  }
  const std::size_t columns = got->value.size() / rows;
  double wrong = 0, explained = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto r = static_cast<float>(rsigma.data[i]);
    const bool overflows = std::isfinite(r) && !std::isfinite(r * r * r);
    for (std::size_t at = i * columns; at < (i + 1) * columns; ++at) {
      const bool broken = std::isfinite(expected->value[at]) && !std::isfinite(got->value[at]);
      wrong += are_other_kinds(expected->value[at], got->value[at]) ? 1 : 0;
      explained += broken && overflows ? 1 : 0;
    }
  }
  if (explained / wrong >= kLeastExplained) {
    findings.push_back(cause_finding(op::kCubedDeviation, "dx", explained / wrong,
                                     "the cube of the reciprocal deviation overflows", "what is wrong",
                                     op::Finding::About::pattern));
  }
}

}  // namespace numcheck::reference
