// Roundings of a product that its library declares, as models that allow them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/declared_rounding.hpp"
#include "model/error_model.hpp"
#include "op/replay.hpp"
#include "verdict/comparison.hpp"

namespace numcheck::verdict {

using ModelTransform = std::function<model::ErrorModel(model::ErrorModel)>;

/// Something that makes a result less precise than its mode promises: its effect on the model, a description, and what the
/// bits must show (nothing if no bits are predicted).
struct Shortcut {
  ModelTransform model;
  std::string sentence;
  std::optional<op::EarlyRounding> evidence;
};

/// At most one of `parts` applies; `others` can be combined with each other and with one of the parts.
struct Shortcuts {
  std::vector<Shortcut> parts;
  std::vector<Shortcut> others;
};

/// Of an output of `gemm` or `grouped_gemm`. Besides the product itself, the bias is rounded early if C is added in place, and C if
/// the epilogue is a separate kernel.
[[nodiscard]] Shortcuts product_shortcuts(const model::DeclaredRounding& of_run, const EvaluationContext& context,
                                          const op::Port& port);

}  // namespace numcheck::verdict
