#include "reference/norm_diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "reference/cause.hpp"

namespace numcheck::reference {
namespace {

bool has_only_infinities(std::span<const double> row) {
  return std::ranges::any_of(row, [](double x) { return std::isinf(x); }) &&
         std::ranges::none_of(row, [](double x) { return std::isnan(x); });
}

}  // namespace

std::vector<op::Finding> diagnose_layernorm(const op::FindingRequest& request) {
  const auto got = std::ranges::find(request.outputs, "rsigma", &op::Delivered::port);
  const auto expected = std::ranges::find(request.expected->outputs, "rsigma", &op::OutputValues::port);
  if (got == request.outputs.end() || expected == request.expected->outputs.end()) {
    return {};
  }
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const std::size_t rows = got->value.size(), columns = x.elements() / std::max<std::size_t>(rows, 1);
  double wrong = 0, explained = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    if (std::isnan(got->value[i]) != std::isnan(expected->value[i])) {
      wrong += 1;
      explained += got->value[i] == 0 && has_only_infinities({x.data + i * columns, columns}) ? 1 : 0;
    }
  }
  if (!(explained / wrong >= kLeastExplained)) {
    return {};
  }
  return {cause_finding("cause", "rsigma", explained / wrong, "rows with infinities have a reciprocal deviation of 0",
                        "what is wrong", op::Finding::About::pattern)};
}

}  // namespace numcheck::reference
