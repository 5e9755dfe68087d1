#include "tolerance/gemm_epilogue_errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace numcheck::tolerance {
namespace {

/// The largest magnitude of what is added to the product; infinite if it is not known.
double most_added(const GemmRequest& g) {
  constexpr std::size_t kNone = 0, kOne = 1;
  const std::size_t addends = (g.p.beta != 0 ? kOne : kNone) + (g.p.bias ? kOne : kNone);
  if (g.request.others_max.size() < addends) {
    return std::numeric_limits<double>::infinity();
  }
  std::size_t next = 0;
  const double of_c = g.p.beta != 0 ? std::abs(g.p.beta) * g.request.others_max[next++] : 0;
  return of_c + (g.p.bias ? g.request.others_max[next] : 0);
}

/// The largest |c| of errors s (y - c), where s P is the product's error. A sum is P + c; of gelu, z gelu'(z) = y + z^2 phi(z),
/// by tanh next to the same.
double largest_addend(const GemmRequest& g) {
  const double most = most_added(g);
  constexpr double kSteepest = 1.13;  // of gelu
  constexpr double kCurved = 0.21;    // 2 phi(sqrt(2))
  return g.p.epilogue == "gelu" ? kSteepest * most + kCurved : most;
}

}  // namespace

void add_cancellation(const GemmRequest& g, model::ErrorModel& model) {
  model.cancelled = g.cancelled * g.enlargement();
  model.var_magnitude += model.cancelled * model.cancelled * (model.var_value + model.var_coherent);
  const double slope = model.slope_slack - 1.5 * (model.slope_low + model.slope_coherent);  // 1.5: as in the gate
  if (model.addends.has_value() && model.cancelled > 0) {
    model.addends->cancelled = model.cancelled * model.cancelled * (model.var_value + model.var_coherent);
    model.slope_second = std::numeric_limits<double>::infinity();  // only what is known of addends limits it
    model.slope_addend = largest_addend(g);
    return;
  }
  model.slope_magnitude = model.cancelled * slope;
  if (g.parts_from_sum() && g.mean_square() < 1) {  // a larger mean is in slope_magnitude
    model.slope_second = std::sqrt(1 + g.mean_square()) * slope;
    model.slope_addend = largest_addend(g);
  }
}

void add_epilogue(const GemmRequest& g, model::ErrorModel& model) {
  const double u = g.epilogue_unit();
  const double u32 = unit_of(core::Dtype::fp32);
  const bool scaled = g.product_scale != 1;
  const double factors = (is_power_of_two(g.p.alpha) || g.p.alpha == 0 ? 0 : 1) + (g.request.mode->scaled ? 2 : 0) +
                         (is_power_of_two(g.p.beta) || g.p.beta == 0 ? 0 : 1);
  const double addends = (g.p.beta != 0 ? 1 : 0) + (g.p.bias ? 1 : 0);
  const double roundings = (scaled ? 1 : 0) + (g.p.beta != 0 ? 1 : 0) + addends + factors;
  // Products of tiny scales lose bits to FP32's subnormal range: of what they multiply, up to half of its unit.
  const double scales = g.request.first_scale * g.request.second_scale * std::min(1.0, std::abs(g.p.alpha));
  const double lost = g.request.mode->scaled && scales > 0 ? std::min(1.0, 0x1p-149 / scales) : 0;
  if (g.request.mode->scaled) {
    const double codes = static_cast<double>(g.products) * g.request.first_max * g.request.second_max;
    const double most = 0x1p-149 * codes * std::max(1.0, std::abs(g.p.alpha));
    model.bound_absolute += most;
    model.var_absolute += most * most / 3;
  }
  const double variance = roundings * u * u / 3 + factors * u * u;
  const bool gelu = g.p.epilogue == "gelu";
  if (g.p.beta != 0 || g.p.bias || gelu) {
    // Terms may cancel, and gelu flattens: only A bounds the intermediate results.
    model.bound_magnitude += roundings * u * g.enlargement();
    model.var_magnitude += variance * g.enlargement() * g.enlargement();
  } else {
    model.bound_value += roundings * u;
    model.var_value += variance;
  }
  model.slope_slack += (factors + addends) * u + lost;
  model.slope_magnitude += model.cancelled * ((factors + addends) * u + lost);
  if (gelu) {
    // |x| (2.5 (1 - t^2) |z| + 1 + 2 sigma(2z)) + |y| <= 5 |x| <= 5 A: section 5.5; 1 + t cancels in the negative tail.
    model.gelu = model::GeluErrors{.bound = 5 * u32, .added = most_added(g)};
    model.bound_magnitude += model.gelu->bound;
    model.var_magnitude += std::pow(model.gelu->bound, 2) / 3;
    model.slope_slack += 4 * u32;  // its constants are rounded once for all elements
    model.lost_alike = true;       // 1 + t is 0 for every z below -5.5, and one number for many above it
  }
  if (g.request.output_scale != 1) {
    model.bound_value += u32;
    model.var_value += u32 * u32 / 3;
  }
}

}  // namespace numcheck::tolerance
