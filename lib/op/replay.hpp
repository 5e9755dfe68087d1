// Whether an output has the bits of roundings that its library declares: what is asked of a reference, and its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "op/value.hpp"

namespace numcheck::op {

struct Operand;

/// Roundings of a product to its output's format before the end, and a less precise function.
struct EarlyRounding {
  int slices = 1;         ///< of k, added in the output's format; 1: the product is one sum
  bool product = false;   ///< the product is rounded before C is added
  bool sum = false;       ///< product and C are, before bias and activation
  double tanh_error = 0;  ///< of gelu's tanh, at most

  [[nodiscard]] bool rounds() const noexcept { return slices > 1 || product || sum; }
};

struct ReplayRequest {
  const Params* params = nullptr;
  std::span<const Operand> inputs;
  core::Dtype dtype = core::Dtype::fp32;  ///< format of the output
  double scale = 1;                       ///< its quantising scale
  /// The number that the device stored as that element, divided by the scale. Called by several threads at a time.
  std::function<double(std::size_t index)> stored;
  EarlyRounding rounding;
  /// Elements to look at besides those that are spread over the output: the farthest off.
  std::vector<std::int64_t> farthest;
  /// What the error of an unrounded sum may be: its second moment, from the sum of the magnitudes of its terms, that of
  /// their squares, and its value.
  std::function<double(double magnitude, double second_moment, double value)> variance;
};

struct Replay {
  bool shown = false;    ///< the bits are those of the roundings, and of nothing less
  bool too_few = false;  ///< not shown, but not contradicted either: no bits of so few elements could show it
  double share = 0;      ///< of the elements that were replayed and have the bits that the roundings predict
  std::uint64_t elements = 0, equal = 0;  ///< that were replayed, and those of them that have these bits
  int slices = 1;                         ///< of k, as the bits say: those that are not empty
  std::string text;                       ///< what was found, as a sentence without its end
};

}  // namespace numcheck::op
