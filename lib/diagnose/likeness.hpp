// Which distribution somebody's numbers are like: error models need to know how the elements of an input relate.
#pragma once

#include <span>

#include "data/distribution.hpp"

namespace numcheck::diagnose {

/// "constant", "signs" (a few small values), "structured" (neighbours that are nearly alike, or opposite), "uniform" (one sign),
/// "activations" (neighbours in rows or columns that agree, or a few large
/// ones), "large_mean" or "normal", with the parameters of the numbers. `cols` is the length of a row.
[[nodiscard]] data::Distribution likeness(std::span<const double> numbers, std::size_t cols);

}  // namespace numcheck::diagnose
