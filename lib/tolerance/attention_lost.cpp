#include "tolerance/attention_lost.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
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

void LostRows::add(const LostRows& rows) noexcept {
  all_ += rows.all_;
  weak_ += rows.weak_;
}

double signal_of(double y, float bound, float deviation, core::Dtype output) {
  const double error = std::min(static_cast<double>(deviation), static_cast<double>(bound));
  const double step = core::ulp(y, output), signal = y * y / (error * error + step * step / 12);
  const bool known = std::isfinite(y) && static_cast<double>(bound) < kUndeterminedBound;
  return known && std::isfinite(signal) ? signal : 0;
}

double lost_slope(const op::AttentionParams& p, const op::OutputValues& o, core::Dtype output,
                  std::span<const float> bound, std::span<const float> deviation) {
  constexpr std::size_t kRows = 256;
  const GradientShape shape(p, o.port);
  const auto channels = static_cast<std::size_t>(shape.channels);
  std::vector<LostRows> parts((shape.rows() + kRows - 1) / kRows);
  core::parallel_chunks(shape.rows(), kRows, [&](std::size_t part, std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      if (!shape.has(row)) {
        continue;
      }
      double signal = 0;
      const std::size_t first = shape.first_of(row);
      for (std::size_t at = first; at < first + channels; ++at) {
        signal += signal_of(o.value[at], bound[at], deviation[at], output);
      }
      parts[part].add(signal, channels);
    }
  });
  LostRows all;
  std::ranges::for_each(parts, [&all](const LostRows& part) { all.add(part); });
  return all.slope();
}

}  // namespace numcheck::tolerance
