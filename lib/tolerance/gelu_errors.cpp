#include "tolerance/gelu_errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/parallel.hpp"
#include "tolerance/output_reduction.hpp"

namespace numcheck::tolerance {
namespace {

/// gelu'(z) = (1 + t) / 2 + z / 2 (1 - t^2) w', t = tanh(w), w = sqrt(2/pi) (z + 0.044715 z^3), without cancellation in 1 + t.
double gelu_slope(double z) {
  constexpr double kRoot = 0.79788456080286535588, kCubic = 0.044715;
  const double half = 1 / (1 + std::exp(-2 * kRoot * (z + kCubic * z * z * z)));  // (1 + t) / 2
  return half + 2 * z * half * (1 - half) * kRoot * (1 + 3 * kCubic * z * z);
}

/// The largest |gelu'| up to z. It rises to 0.129 at -1.41, falls to 0 at -0.75, and rises to 1.129 at 1.41.
double steepest_up_to(double z) {
  constexpr double kDip = -1.5, kSummit = 1.4, kLeft = 0.13;
  if (z < kDip) {
    return std::fabs(gelu_slope(z));
  }
  return z < kSummit ? std::max(kLeft, gelu_slope(z)) : kGeluSteepness;
}

float upward(double x) {
  const auto rounded = static_cast<float>(x);
  return static_cast<double>(rounded) < x ? std::nextafter(rounded, std::numeric_limits<float>::infinity()) : rounded;
}

}  // namespace

void narrow_to_gelu(const model::ErrorModel& model, std::span<const float> z, std::span<float> magnitude,
                    std::span<float> deviation) {
  if (!model.gelu.has_value() || !(model.var_second > 0) || !std::isfinite(model.bound_magnitude)) {
    return;
  }
  const double own = model.gelu->bound, of_sum = model.bound_magnitude - own;
  constexpr std::size_t kPerTask = std::size_t{1} << 14;
  core::parallel_chunks(z.size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const double a = static_cast<double>(magnitude[i]), s = static_cast<double>(deviation[i]);
      const double at = static_cast<double>(z[i]);
      if (!(a < model.overflow_magnitude) || !std::isfinite(at) || !std::isfinite(s)) {
        continue;
      }
      const double most = of_sum * a + model.bound_absolute + std::fabs(at) * 0x1p-23;
      const double bound = steepest_up_to(at + most) / kGeluSteepness * of_sum * a + own * (std::fabs(at) + most);
      const double narrowed = std::min(a, bound / model.bound_magnitude);
      magnitude[i] = std::min(upward(narrowed), magnitude[i]);
      const double kept = static_cast<double>(magnitude[i]);
      deviation[i] = upward(std::sqrt(s * s + model.var_magnitude / model.var_second * (a - kept) * (a + kept)));
    }
  });
}

}  // namespace numcheck::tolerance
