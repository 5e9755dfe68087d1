// What errors of correct arithmetic leave of a slope: the limit of gate G3.
#pragma once

#include <optional>

#include "metric/compare.hpp"
#include "model/error_model.hpp"

namespace numcheck::tolerance {

/// A sum of independent changes with that variance, none larger than `step`, exceeds this once in e^15 = 3e6 cases
/// (Bernstein's inequality).
[[nodiscard]] double most_of(double variance, double step);

/// The largest |slope| of e on y, on the side where the measured one is; nothing if a slope says nothing.
/// One-sided: split-K only reduces the bias of truncation, so anything between 1.5 predictions and zero is fine. If
/// outputs are rounded to few bits and y spreads over less than one of their ulps, the rounding errors do not average
/// out, so a slope says nothing.
[[nodiscard]] std::optional<double> slope_limit(const metric::Statistics& s, const model::ErrorModel& model);

}  // namespace numcheck::tolerance
