// The sizes that the shapes of tensors tell: each dimension is a product of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "diagnose/fit.hpp"
#include "diagnose/shape_probe.hpp"

namespace numcheck::diagnose {

struct SizeQuestion {
  const op::Op& op;
  const op::Mode& mode;
  const ChosenParams& chosen;
  std::span<const TensorShape> shapes;
  const ShapeProbe& probe;
};

/// Sets the sizes among the parameters, and those that no tensor tells to what they are by default. Returns what does not fit, as
/// sentences; of several, the first that the equations meet.
[[nodiscard]] std::vector<std::string> solve_sizes(const SizeQuestion& question, op::Params& params);

}  // namespace numcheck::diagnose
