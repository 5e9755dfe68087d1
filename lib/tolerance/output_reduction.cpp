#include "tolerance/output_reduction.hpp"

#include <string>

#include "core/dtype.hpp"

namespace numcheck::tolerance {

namespace {

/// In units of u^2: of rounding a log-uniform value to nearest.
constexpr double kRoundingVariance = 0.18;

}  // namespace

ErrorModel with_output_reduction(ErrorModel model, int slices) {
  const core::DtypeInfo& format = core::dtype_info(model.output);
  const double u = format.unit_roundoff;
  const double variance = kRoundingVariance * u * u;
  const double count = slices;
  model.bound_magnitude += u * (count + 1);
  model.bound_absolute += (count + 1) * format.min_subnormal / 2;
  model.var_second += variance * (1 + count / 6);
  model.var_value += variance * (1 + count / 3);
  model.var_magnitude += model.cancelled * model.cancelled * variance * (1 + count / 3);
  model.source += ", " + std::to_string(slices) + " slices added in " + std::string(format.name);
  return model;
}

ErrorModel with_rounded_product(ErrorModel model) {
  const core::DtypeInfo& format = core::dtype_info(model.output);
  const double u = format.unit_roundoff;
  const double variance = kRoundingVariance * u * u;
  model.bound_magnitude += u;
  model.bound_absolute += format.min_subnormal / 2;
  model.var_second += variance;
  model.var_value += variance;
  model.var_magnitude += model.cancelled * model.cancelled * variance;
  model.source += ", the product rounded to " + std::string(format.name);
  return model;
}

}  // namespace numcheck::tolerance
