#include "tolerance/output_reduction.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/dtype.hpp"

namespace numcheck::tolerance {
namespace {

/// Variance of rounding a log-uniform value to nearest, in units of u^2.
constexpr double kRoundingVariance = 0.18;

}  // namespace

model::ErrorModel with_output_reduction(model::ErrorModel model, int slices, double scale) {
  const core::DtypeInfo& format = core::dtype_info(model.output);
  const double u = format.unit_roundoff;
  const double variance = kRoundingVariance * u * u;
  const double count = slices;
  const double spacing = std::max(1.0, scale) * format.min_subnormal;
  model.bound_magnitude += u * (count + 1);
  model.bound_absolute += (count + 1) * spacing / 2;
  model.var_second += variance * (1 + count / 6);
  model.var_value += variance * (1 + count / 3);
  model.var_magnitude += model.cancelled * model.cancelled * variance * (1 + count / 3);
  model.var_absolute += (count + 1) * spacing * spacing / 12;
  if (std::isinf(model.slope_slack)) {  // operands that repeat: slices may be alike, and so may their errors
    model.var_magnitude = std::max(model.var_magnitude, std::pow(model.bound_magnitude / model.kappa, 2));
  }
  model.source += ", " + std::to_string(slices) + " slices added in " + std::string(format.name);
  return model;
}

model::ErrorModel with_overflowing_slices(model::ErrorModel model, double scale) {
  constexpr double kMargin = 0.99;  // of their own rounding
  const double largest = kMargin * core::dtype_info(model.output).max_finite * std::min(1.0, scale);
  model.overflow_magnitude = std::min(model.overflow_magnitude, largest);
  model.overflow_possible = true;
  model.reach = 0;  // which is that of FP32
  model.source += ", whose sums may overflow";
  return model;
}

model::ErrorModel with_rounded_part(model::ErrorModel model, double steepness, double rest_square, double rest_spread,
                                    double rest_drift) {
  constexpr double kWeights = 1.25;  // of elements
  const core::DtypeInfo& format = core::dtype_info(model.output);
  const double u = steepness * format.unit_roundoff;
  const double spacing = steepness * format.min_subnormal;
  const double variance = kRoundingVariance * u * u;
  model.bound_magnitude += u;
  model.bound_absolute += spacing / 2;
  model.var_second += variance;
  model.var_value += variance;
  model.var_magnitude += model.cancelled * model.cancelled * variance;
  model.var_absolute += spacing * spacing / 12 + variance * rest_square;
  model.slope_slack += std::max(u * std::exp(-2 * std::numbers::pi * std::numbers::pi * rest_spread * rest_spread),
                                steepness * kWeights * rest_drift);
  model.source += ", a part rounded to " + std::string(format.name);
  return model;
}

model::ErrorModel with_approximate_tanh(model::ErrorModel model) {
  constexpr double kError = kTanhError / 2;
  model.bound_magnitude += kError;
  model.var_magnitude += kError * kError / 3;
  if (model.gelu.has_value()) {
    model.gelu->bound += kError;
  }
  model.slope_slack += kError;  // the error is a function of z: if z hardly varies, it is the same in all elements
  model.source += ", an approximate tanh";
  return model;
}

}  // namespace numcheck::tolerance
