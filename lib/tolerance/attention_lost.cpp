#include "tolerance/attention_lost.hpp"

#include <algorithm>
#include <cmath>

#include "core/codec.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_gradient_shape.hpp"
#include "tolerance/attention_products.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {

void LostRows::add(double signal, std::size_t elements) noexcept {
  constexpr double kMost = 9 * kAttentionKappa * kAttentionKappa;
  all_ += signal;
  weak_ += signal <= kMost * static_cast<double>(elements) ? signal : 0;
}

double signal_of(double y, float bound, float deviation, core::Dtype output) {
  const double error = std::min(static_cast<double>(deviation), static_cast<double>(bound));
  const double step = core::ulp(y, output), signal = y * y / (error * error + step * step / 12);
  const bool known = std::isfinite(y) && static_cast<double>(bound) < kUndeterminedBound;
  return known && std::isfinite(signal) ? signal : 0;
}

double lost_slope(const op::AttentionParams& p, const op::OutputValues& o, core::Dtype output,
                  std::span<const float> bound, std::span<const float> deviation) {
  const GradientShape shape(p, o.port);
  LostRows rows;
  for (std::size_t row = 0; row < shape.rows(); ++row) {
    if (!shape.has(row)) {
      continue;
    }
    double signal = 0;
    const auto channels = static_cast<std::size_t>(shape.channels);
    for (std::size_t at = shape.first_of(row), end = at + channels; at < end; ++at) {
      signal += signal_of(o.value[at], bound[at], deviation[at], output);
    }
    rows.add(signal, channels);
  }
  return rows.slope();
}

}  // namespace numcheck::tolerance
