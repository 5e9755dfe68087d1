#include "kernels/sim/stochastic_e2m1.hpp"

#include <algorithm>
#include <cmath>

#include "core/codec.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr unsigned kDraws = 256, kMostCode = 7, kSign = 8;
constexpr float kLargest = 6;

/// Bits without a pattern, of a counter: the finaliser of SplitMix64.
std::uint64_t mixed(std::uint64_t counter) {
  counter += 0x9E3779B97F4A7C15;
  counter = (counter ^ counter >> 30) * 0xBF58476D1CE4E5B9;
  counter = (counter ^ counter >> 27) * 0x94D049BB133111EB;
  return counter ^ counter >> 31;
}

float spacing(float magnitude) {
  return magnitude >= 4 ? 2.0F : magnitude >= 2 ? 1.0F : 0.5F;
}

}  // namespace

unsigned StochasticCodes::code(float scaled, std::size_t element) const {
  constexpr std::size_t kShared = 4, kFew = 1000;
  constexpr unsigned kTooMuch = 8;
  if (std::isnan(scaled)) {
    return kMostCode;
  }
  const std::uint64_t counter = fault == "draws_shared" ? element / kShared : element;
  const std::uint64_t bits = mixed(mixed(seed * 2 + (turned ? 1 : 0)) ^ counter);
  auto draw = static_cast<unsigned>(bits % kDraws);
  const float magnitude = std::min(std::fabs(scaled), kLargest);
  const float step = spacing(magnitude), lower = std::floor(magnitude / step) * step;
  float missing = magnitude - lower;
  if (fault == "stochastic_biased") {
    draw = std::min(draw + kTooMuch, kDraws - 1);
  } else if (fault == "stochastic_even" && missing > 0) {
    missing = step / 2;
  } else if (fault == "stochastic_upward" && scaled < 0 && missing > 0) {
    missing = step - missing;
  }
  // Sums in FP32 would be rounded, and draws be too large by one where `missing` is next below a 256th of a step.
  const bool up = std::floor(missing / step * kDraws) + static_cast<float>(draw) >= kDraws;
  const auto number = static_cast<double>(lower + (up ? step : 0));
  auto code = static_cast<unsigned>(core::encode(number, core::Dtype::fp4_e2m1, core::Overflow::saturate));
  if (fault == "stochastic_beyond" && bits / kDraws % kFew == 0 && code + 2 <= kMostCode) {
    code += 2;
  }
  return code | (std::signbit(scaled) ? kSign : 0);
}

}  // namespace numcheck::kernels::sim
