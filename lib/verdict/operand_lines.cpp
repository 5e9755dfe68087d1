#include "verdict/operand_lines.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include "op/grouped_gemm.hpp"

namespace numcheck::verdict {
namespace {

/// One line per row of the operand, or per column.
std::vector<metric::Line> lines_of(const op::Operand& operand, bool by_row, std::int64_t batches) {
  const std::int64_t count = by_row ? operand.rows : operand.cols;
  std::vector<metric::Line> lines(static_cast<std::size_t>(batches * count));
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    const double* data = operand.data + batch % operand.batch * operand.rows * operand.cols;
    for (std::int64_t row = 0; row < operand.rows; ++row) {
      for (std::int64_t col = 0; col < operand.cols; ++col) {
        const double x = std::fabs(data[row * operand.cols + col]);
        metric::Line& line = lines[static_cast<std::size_t>(batch * count + (by_row ? row : col))];
        line.finite = line.finite && std::isfinite(x);
        if (x > 0 && std::isfinite(x)) {
          line.largest = std::max(line.largest, x);
          line.smallest = std::min(line.smallest, x);
        }
      }
    }
  }
  return lines;
}

}  // namespace

OperandLines operand_lines(const EvaluationContext& context, const op::Port& port, const model::ErrorModel& model) {
  const plan::Case& c = *context.prepared->c;
  if (port.role != op::Role::output || !model.overflow_possible) {
    return {};
  }
  const std::optional<op::Product> product = op::product_behind(*c.op, c.params, port.name);
  if (!product.has_value()) {
    return {};
  }
  const bool infinite =
      std::ranges::any_of(expected_values(context, port).value.span(), [](double y) { return std::isinf(y); });
  if (!infinite && !std::isfinite(model.operand_limit) && !model.zero_times_product) {
    return {};
  }
  const std::vector<op::Operand>& operands = context.prepared->rounding->operands;
  return {lines_of(op::operand_named(operands, product->a), !product->params.trans_a, port.batch),
          lines_of(op::operand_named(operands, product->b), product->params.trans_b, port.batch)};
}

}  // namespace numcheck::verdict
