// The number in a formula for which an output fits best.
#pragma once

#include <cstddef>
#include <optional>

#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {

/// The field that says how an op rounds that number first, if one does: scale_rounding of scale. Its choice "ideal" means not at
/// all.
[[nodiscard]] std::optional<std::size_t> rounding_field(const op::Op& op, std::size_t field);

/// By Gauss and Newton, from that number on; each step is shortened until it lessens the error. Where the op rounds
/// the number first, the formula is differentiated without that, as its steps have no slope. NaN if there is none.
[[nodiscard]] double fitted_number(const Evidence& evidence, std::size_t field, double start);

}  // namespace numcheck::diagnose
