#include "tolerance/tracked_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "core/ulp_size.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {

model::ErrorModel tracked_error_model(const model::ModelRequest& request, std::string_view port) {
  constexpr double kKappa = 2;
  constexpr double kUndetermined = 1e38;  // a larger B means that the op does not determine the element
  constexpr double kSlopeUnits = 4;       // error in u of a factor shared by a row or the whole tensor: rsigma, a scale
  model::ErrorModel model;
  model.output = request.output;
  model.output_scale = request.output_scale;
  model.exact = request.exact_leg;
  model.bound_magnitude = 1;
  model.var_second = 1;
  model.kappa = kKappa;
  model.overflow_magnitude = kUndetermined;
  model.slope_slack = kSlopeUnits * kUnit32;
  model.one_error = request.constant_inputs;
  model.lost_alike = true;
  model.lines_share = true;
  constexpr double kOneSign = 0.9;
  model.sums_agree = request.first_pattern.coherence > kOneSign;
  if (core::dtype_info(request.output).storage_bytes == 1) {
    model.bound_value = kUnit32;
    model.var_value = kRoundVariance * kUnit32 * kUnit32;
  }
  model.source = fmt::format("{}: B and V carried through the formula in FP32", port);
  return model;
}

double certain_slope(const op::OutputValues& values, core::Dtype format) {
  constexpr double kCertain = 0.99;  // of B: what it rounds besides is small
  constexpr std::size_t kMost = std::size_t{1} << 16;
  if (core::dtype_info(format).storage_bytes != 2 || values.magnitude.empty()) {
    return 0;
  }
  const core::UlpSize ulp(format);
  const std::size_t stride = std::max<std::size_t>(1, values.value.size() / kMost) | 1;
  double all = 0, certain = 0;
  for (std::size_t i = 0; i < values.value.size(); i += stride) {
    const double y = std::fabs(values.value[i]), bound = static_cast<double>(values.magnitude[i]);
    const double deviation = std::fmin(static_cast<double>(values.deviation[i]), bound);
    if (!std::isfinite(y) || !std::isfinite(bound) || y == 0) {
      continue;
    }
    const double step = ulp.of(y + 3 * deviation), weight = 1 / (deviation * deviation + step * step / 12);
    all += weight * y * y;
    certain += deviation >= kCertain * bound ? weight * y * bound : 0;
  }
  return all == 0 ? 0 : certain / all;
}

void widen_for_order(const model::ModelRequest& request, model::ErrorModel& model) {
  const auto runs = [](const data::Pattern& pattern) {
    return pattern.order == data::Order::signed_runs ||
           (pattern.order == data::Order::structured && pattern.coherence == 0);
  };
  if (model.reduction > 1 && (runs(request.first_pattern) || runs(request.second_pattern))) {
    model.var_magnitude += kRoundVariance / 3 / model.reduction;
  }
}

}  // namespace numcheck::tolerance
