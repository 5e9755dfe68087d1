#include "tolerance/slope_limit.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/dtype.hpp"
#include "metric/clusters.hpp"
#include "tolerance/judge.hpp"

namespace numcheck::tolerance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double count(std::uint64_t n) {
  return static_cast<double>(n);
}

constexpr double kErrors = 5;  ///< standard errors of a slope

/// What the predicted errors leave of a slope: if all of a row or column are the same, or each result's is independent; equal
/// results have equal errors.
struct PredictedSlope {
  double alike, independent;
};

/// Of a short output, got - RN(y) is 0 but for flips, which are few: their number is predicted, and a scatter that is measured is
/// that of those there are.
PredictedSlope predicted_slope(const metric::Statistics& s, const model::ErrorModel& model, bool narrow) {
  const double copies = std::sqrt(model.slope_copies);
  if (!narrow) {
    const double independent = kErrors * copies * std::sqrt(s.repeats / (s.signal * count(s.counted())));
    const double equal = s.repeats > 1 && s.signal > 0 ? independent : 0;
    return {std::max(kErrors * copies * s.slope_predicted_se, equal), independent};
  }
  // Rows that are rounded alike flip together; that they lie at the same distances from boundaries is in the drift.
  const double repeats = s.repeats * model.slope_copies / std::max(model.slope_copies, model.rounding_copies);
  const double flips = repeats * s.slope_flip_se * s.slope_flip_se;
  const double alike = model.slope_copies * s.slope_predicted_se * s.slope_predicted_se;
  const double step = repeats * s.slope_flip_step;
  return {s.slope_flip_drift + most_of(flips + alike, step), s.slope_flip_drift + most_of(flips, step)};
}

/// What the errors of correct arithmetic leave of a slope. Errors of a row, or of a column, may be the same; whether they are
/// shows in the scatter of rows and columns, if there are enough of them. It does not show what all elements share: the error
/// of a constant operand, of sums of one sign, or, where y spreads over few of the output's numbers, those that depend on
/// which of them it is.
double slope_error(const metric::Statistics& s, const model::ErrorModel& model, bool narrow) {
  constexpr double kLeast = 0x1p-26;
  constexpr double kManyNumbers = 16;
  const double scatter = std::sqrt(model.slope_copies) * s.slope_se;
  const PredictedSlope predicted = predicted_slope(s, model, narrow);
  // Sums of one sign that are alike in all rows may have the same error z sqrt(V) in all of them, z at most kappa (gate G2 rms).
  const double together = model.sums_agree && !narrow ? model.kappa / std::sqrt(s.signal) : 0;
  const double whatever = std::max({kErrors * scatter, predicted.alike, together, kLeast});
  if (s.slope_clusters < 2) {
    return whatever;
  }
  if (model.scatter_shows && narrow) {  // which of its numbers y is near is in the drift
    return std::min(whatever, std::max(metric::student_limit(kErrors, s.slope_clusters) * scatter + s.slope_flip_drift,
                                       predicted.independent));
  }
  const bool shared = model.rows_agree || model.columns_agree || model.sums_agree || s.spread_ulps < kManyNumbers;
  if (shared || model.element_errors) {
    return whatever;
  }
  return std::min(
      whatever, std::max({metric::student_limit(kErrors, s.slope_clusters) * scatter, predicted.independent, kLeast}));
}

/// The slope that a product's errors, which follow the product, have on what is left of it beside addends, if theirs on the product
/// itself is `side`.
double slope_of_product(const metric::Statistics& s, const model::ErrorModel& model, double side) {
  if (model.slope_second == 0) {
    return 0;
  }
  // sum w S2 <= N / var_second, over all elements, those at which relu leaves nothing included.
  const double by_products = model.slope_second / std::sqrt(model.var_second * s.signal);
  // slope_second has what constant operands and long chains add to it, and nothing of the epilogue.
  const double least = 1.5 * std::abs(model.slope_low + model.slope_coherent);
  const double drift = std::isfinite(model.slope_second) ? std::max(least, model.slope_second) : least;
  const double by_addends =
      std::isfinite(model.slope_addend) ? side + drift * std::min(s.addend, s.known_addend) : kInfinity;
  return std::min(by_products, by_addends);
}

}  // namespace

double most_of(double variance, double step) {
  constexpr double kLogOfChance = 15;
  return std::sqrt(2 * variance * kLogOfChance) + step * kLogOfChance / 3;
}

std::optional<double> slope_limit(const metric::Statistics& s, const model::ErrorModel& model) {
  constexpr double kFewestUlps = 0.6;  // for a normal y of that width less than 0.1 % of an ulp remains
  const bool narrow = core::dtype_info(model.output).storage_bytes < 4;
  const double error = slope_error(s, model, narrow);
  // sum w A^2 <= N / var_magnitude, because w = 1 / V and V >= var_magnitude A^2.
  const double cancelled =
      model.slope_magnitude == 0 ? 0 : model.slope_magnitude / std::sqrt(model.var_magnitude * s.signal);
  // The same error z sqrt(V) in all elements has the slope z / sqrt(mean of y^2 / V), whatever their number.
  const double shared = model.one_error ? lambda_of(s.elements) * model.kappa / std::sqrt(s.signal) : 0;
  // Lost values have e = -y, a slope of -1; as the rms of e / sqrt(V) is at most kappa, their share of sum y^2 / V is
  // at most kappa^2 N.
  const double lost = !model.lost_alike ? 0
                      : s.signal > 0    ? std::min(model.kappa * model.kappa, s.lost) / s.signal
                                        : kInfinity;
  const double subnormal = s.rms_expected > 0 ? model.slope_absolute / s.rms_expected : 0;
  const double tolerance = error + model.slope_slack + cancelled + shared + lost + subnormal;
  if (tolerance == kInfinity || (narrow && s.spread_ulps < kFewestUlps)) {
    return {};
  }
  // A without the addends may be less than |y|.
  const double predicted = model.slope_low + model.slope_coherent * std::min(s.coherence, 1.0);
  const double side = s.slope < 0 ? -1.5 * std::min(predicted, 0.0) : 0;
  return std::max(side, slope_of_product(s, model, side)) + tolerance;
}

}  // namespace numcheck::tolerance
