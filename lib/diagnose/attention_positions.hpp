// Which queries of attention are wrong.
#pragma once

#include <cstdint>

#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {

/// The first and the last position with wrong elements, of outputs whose rows are queries; the last is before the first if there
/// is none.
struct Positions {
  std::int64_t first = 0, last = -1;
};

[[nodiscard]] Positions wrong_positions(const Evidence& evidence);

}  // namespace numcheck::diagnose
