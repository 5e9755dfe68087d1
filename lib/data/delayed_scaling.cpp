#include "data/delayed_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace numcheck::data {

float DelayedScaling::target() const noexcept {
  return static_cast<float>(core::dtype_info(format).max_finite) * std::ldexp(1.0F, static_cast<int>(-margin));
}

float DelayedScaling::scale_for(float amax, float previous) const noexcept {
  const float scale = std::isfinite(amax) && amax > 0 ? target() / amax : previous;
  return std::isinf(scale) ? std::numeric_limits<float>::max() : scale;
}

DelayedScaling delayed_scaling_of(const op::Fp8RecipeParams& p) {
  return {.format = core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3),
          .choice = p.algorithm == "most_recent" ? AmaxChoice::most_recent : AmaxChoice::largest,
          .margin = p.margin,
          .idle = p.reduces() ? IdleTensor::left_alone : IdleTensor::rolled};
}

void ScalingState::update(const DelayedScaling& rules, std::optional<float> reduced) noexcept {
  const float last = reduced.value_or(0) != 0 ? *reduced : history_[0];  // NaN is not 0
  if (rules.idle == IdleTensor::left_alone && last == 0) {
    scale_ = rules.scale_for(0, scale_);
    return;
  }
  float amax = last;
  if (rules.choice == AmaxChoice::largest) {
    amax = std::fmax(0.0F, last);
    std::for_each(history_.begin() + 1, history_.end(), [&amax](float each) { amax = std::fmax(amax, each); });
  }
  scale_ = rules.scale_for(amax, scale_);
  history_[0] = last;
  std::rotate(history_.begin(), history_.begin() + 1, history_.end());  // the oldest is at the front
  history_[0] = 0;
}

}  // namespace numcheck::data
