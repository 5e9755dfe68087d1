// Findings that name the cause of what is wrong with an output.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "op/known_cause.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// A cause counts from this part of what is wrong on.
inline constexpr double kLeastExplained = 0.9;

/// Whether one of them is NaN or infinite and the other is not the same.
[[nodiscard]] inline bool are_other_kinds(double x, double y) noexcept {
  return std::isnan(x) != std::isnan(y) || ((std::isinf(x) || std::isinf(y)) && !std::isnan(x) && x != y);
}

/// The finding of an output that is named after that cause: "<cause>; this explains 98 % of <what>". `share` is the part.
[[nodiscard]] op::Finding cause_finding(const op::KnownCause& known, std::string_view port, double share,
                                        std::string cause, std::string_view what, op::Finding::About about);

}  // namespace numcheck::reference
