// What the operands of a product's outputs are like, row by row and column by column.
#pragma once

#include <vector>

#include "metric/compare.hpp"
#include "verdict/comparison.hpp"

namespace numcheck::verdict {

struct OperandLines {
  std::vector<metric::Line> rows, columns;  ///< of all batches of the output
};

/// Empty unless the case is a product whose model excuses overflow by what the operands of a row and a column are like.
[[nodiscard]] OperandLines operand_lines(const EvaluationContext& context, const op::Port& port,
                                         const model::ErrorModel& model);

}  // namespace numcheck::verdict
