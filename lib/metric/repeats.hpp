// Results that repeat: equal sums are rounded alike, so that one error moves all of them at once.
#pragma once

#include <span>

namespace numcheck::metric {

/// How many of the values other than 0 have, on average, the magnitude of one of them, itself included: sum n^2 / sum n over
/// the magnitudes. Estimated from pairs among about 4096 of the values; 1 if all differ.
[[nodiscard]] double repeats_of(std::span<const double> values);

}  // namespace numcheck::metric
