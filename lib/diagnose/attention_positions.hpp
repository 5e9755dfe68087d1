// Which queries of attention are wrong.
#pragma once

#include <cstdint>
#include <span>

#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {

/// The first and the last position with wrong elements, of outputs whose rows are queries; the last is before the first if there
/// is none.
struct Positions {
  std::int64_t first = 0, last = -1;
};

/// `is_wrong` is parallel to all elements of the port.
[[nodiscard]] Positions positions_of(std::span<const std::uint8_t> is_wrong, const op::Port& port);
[[nodiscard]] Positions wrong_positions(const Evidence& evidence);

}  // namespace numcheck::diagnose
