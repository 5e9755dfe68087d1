// Scales of tensors in FP8: which numbers an output is multiplied by, and which one its numbers tell.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/hypothesis.hpp"
#include "diagnose/scale_range.hpp"

namespace numcheck::diagnose {

/// Relative: of numbers that a few FP32 operations made in one order or another, and of the scale that numbers tell then.
inline constexpr double kSameFloat = 0x1p-20;

/// When a tensor is multiplied by a scale.
enum class AppliedTo {
  operand,  ///< after its codes are read
  stored,   ///< before its codes are made
};

/// A number that a tensor is multiplied by.
struct Scale {
  op::Port port;
  std::string of;        ///< the tensor
  double number = 1;     ///< as given, or as it follows from other inputs
  bool is_given = true;  ///< and does not follow
  AppliedTo when = AppliedTo::operand;
};

[[nodiscard]] double as_float(double x);

/// Whether FP32 holds it as a positive, finite number.
[[nodiscard]] bool is_scale(double x);

/// The number of an output of one element; nothing if it is not given.
[[nodiscard]] std::optional<double> given_output(const Subject& subject, std::string_view port);

/// Scales that the output depends on. Not those of attention's tensors, of which its output is no multiple.
[[nodiscard]] std::vector<Scale> scales_of(const Evidence& evidence);

/// That the scale was another number. scale_inv of quantize stays as declared where it is right.
[[nodiscard]] Hypothesis with_scale(const Evidence& evidence, const Scale& scale, double number, std::string name,
                                    std::string cause);

/// A tensor of one number.
[[nodiscard]] prepare::SharedDoubles one_number(double x);

/// The scale that most of the output's numbers were made with; nothing if they agree on none, and of operands of products, whose
/// output is a multiple of all of their scales.
[[nodiscard]] std::optional<ScaleRange> range_of(const Evidence& evidence, const Scale& scale);

}  // namespace numcheck::diagnose
