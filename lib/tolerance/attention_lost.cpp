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

double signal_of(double y, float bound, float deviation, const model::ModelRequest& request) {
  const double error = std::min(static_cast<double>(deviation), static_cast<double>(bound));
  const double step = core::ulp(y * request.output_scale, request.output) / std::fabs(request.output_scale);
  const double signal = y * y / (error * error + step * step / 12);
  const bool known = std::isfinite(y) && static_cast<double>(bound) < kUndeterminedBound;
  return known && std::isfinite(signal) ? signal : 0;
}

}  // namespace numcheck::tolerance
