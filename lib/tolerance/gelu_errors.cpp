#include "tolerance/gelu_errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "core/upward.hpp"
#include "tolerance/output_reduction.hpp"

namespace numcheck::tolerance {
namespace {

constexpr double kRoot = 0.79788456080286535588, kCubic = 0.044715;

/// w = sqrt(2/pi) (z + 0.044715 z^3)
double tanh_argument(double z) {
  return kRoot * (z + kCubic * z * z * z);
}

/// (1 + tanh(w)) / 2, without cancellation.
double gate_of(double w) {
  return 1 / (1 + std::exp(-2 * w));
}

/// |gelu'(z)| = |(1 + t) / 2 + z / 2 (1 - t^2) w'|, t = tanh(w)
double gelu_slope(double z) {
  const double half = gate_of(tanh_argument(z));
  return std::fabs(half + 2 * z * half * (1 - half) * kRoot * (1 + 3 * kCubic * z * z));
}

/// The largest |gelu'| between two points. It rises to 0.129 at -1.41, falls to 0 at -0.75, and rises to 1.129 at 1.41.
double steepest_between(double low, double high) {
  constexpr double kDip = -1.41, kSummit = 1.41, kNear = 0.05, kLeft = 0.13;
  double most = std::max(gelu_slope(low), gelu_slope(high));
  most = low < kDip + kNear && high > kDip - kNear ? std::max(most, kLeft) : most;
  return low < kSummit + kNear && high > kSummit - kNear ? kGeluSteepness : most;
}

/// What gelu's own arithmetic in FP32 may add, for |z| up to `most` beyond it:
///   u (|z| (2.5 (1 - t^2) |w| + 1 + 2 sigma(2 w)) + |y|) <= 5 u |z|, and half the error of an approximate tanh times |z|.
/// Source: tensor_core_numerics, section 5.5.
double own_error(double z, double most, const model::GeluErrors& errors) {
  constexpr double kUnit = 0x1p-24, kMostTerms = 5;
  const double size = std::fabs(z), w = tanh_argument(z), half = gate_of(w);
  const double terms = 2.5 * 4 * half * (1 - half) * std::fabs(w) + 1 + 2 * half + half;
  return (errors.bound - kUnit * (kMostTerms - std::min(terms, kMostTerms))) * size + errors.bound * most;
}

/// z^2 phi(z), or what is next to it by tanh: z / 2 (1 - t^2) w' z.
double curved_part(double z) {
  const double half = gate_of(tanh_argument(z));
  return 2 * z * z * half * (1 - half) * kRoot * (1 + 3 * kCubic * z * z);
}

/// V of an output.
double variance_of(const model::ErrorModel& model, double y, float magnitude, float deviation) {
  const double a = static_cast<double>(magnitude), s = static_cast<double>(deviation);
  const bool is_short = core::dtype_info(model.output).storage_bytes < 4;
  const double ulp = is_short ? core::ulp(y * model.output_scale, model.output) / model.output_scale : 0;
  return model.var_second * s * s + model.var_magnitude * a * a + model.var_value * y * y + model.var_absolute +
         ulp * ulp / 12;
}

struct SlopeSums {
  double lost = 0, addend = 0, signal = 0;
};

}  // namespace

void narrow_to_gelu(const model::ErrorModel& model, std::span<const float> z, std::span<float> magnitude,
                    std::span<float> deviation) {
  if (!model.gelu.has_value() || !(model.var_second > 0) || !std::isfinite(model.bound_magnitude)) {
    return;
  }
  const double of_sum = model.bound_magnitude - model.gelu->bound;
  constexpr std::size_t kPerTask = std::size_t{1} << 14;
  core::parallel_chunks(z.size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const double a = static_cast<double>(magnitude[i]), s = static_cast<double>(deviation[i]);
      const double at = static_cast<double>(z[i]);
      if (!(a < model.overflow_magnitude) || !std::isfinite(at) || !std::isfinite(s)) {
        continue;
      }
      const double most = of_sum * a + model.bound_absolute + std::fabs(at) * 0x1p-23;
      const double slope = steepest_between(at - most, at + most) / kGeluSteepness;
      const double bound = slope * of_sum * a + own_error(at, most, *model.gelu);
      const double narrowed = std::min(a, bound / model.bound_magnitude);
      magnitude[i] = std::min(core::upward(narrowed), magnitude[i]);
      const double kept = static_cast<double>(magnitude[i]);
      deviation[i] = core::upward(std::sqrt(s * s + model.var_magnitude / model.var_second * (a - kept) * (a + kept)));
    }
  });
}

std::optional<GeluSlopes> slopes_of_gelu(const model::ErrorModel& model, const GeluOutputs& outputs) {
  const std::size_t size = outputs.y.size();
  if (!model.gelu.has_value() || size == 0 || outputs.z.size() != size || outputs.magnitude.size() != size) {
    return {};
  }
  constexpr std::size_t kPerTask = std::size_t{1} << 14;
  std::vector<SlopeSums> parts((size + kPerTask - 1) / kPerTask);
  core::parallel_chunks(size, kPerTask, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const double z = static_cast<double>(outputs.z[i]), y = std::fabs(outputs.y[i]);
      const double variance = variance_of(model, y, outputs.magnitude[i], outputs.deviation[i]);
      if (!std::isfinite(z) || y == 0 || !std::isfinite(variance)) {
        continue;
      }
      const double addend = curved_part(z) + gelu_slope(z) * model.gelu->added;
      parts[chunk].lost += std::min(1.0, own_error(z, 0, *model.gelu) / y) * y * y / variance;
      parts[chunk].addend += addend * y / variance;
      parts[chunk].signal += y * y / variance;
    }
  });
  SlopeSums all;
  for (const SlopeSums& part : parts) {
    all.lost += part.lost;
    all.addend += part.addend;
    all.signal += part.signal;
  }
  if (!(all.signal > 0) || !std::isfinite(all.signal) || !std::isfinite(all.addend)) {
    return {};
  }
  return GeluSlopes{.lost = all.lost / static_cast<double>(size), .addend = all.addend / all.signal};
}

}  // namespace numcheck::tolerance
