#include <cmath>
#include <string_view>
#include <variant>

#include "data/distribution_params.hpp"
#include "tolerance/error_model.hpp"

namespace numcheck::tolerance {
namespace {

/// Values in an interval that is short against its distance from zero round alike in every binade of the format.
bool is_narrow(double center, double half_width) {
  constexpr double kFewest = 0x1p-8;
  return std::abs(center) * kFewest > half_width;
}

}  // namespace

Pattern pattern_of(const data::Distribution& distribution) {
  const std::string_view name = distribution.name;
  if (name == "constant") {
    return Pattern::constant;
  }
  if (name == "structured") {
    return Pattern::structured;
  }
  if (name == "uniform") {
    const auto p = op::from_params<data::UniformParams>(distribution.params);
    return is_narrow((p.low + p.high) / 2, std::abs(p.high - p.low) / 2) ? Pattern::structured : Pattern::random;
  }
  if (name == "large_mean") {
    const auto p = op::from_params<data::LargeMeanParams>(distribution.params);
    return is_narrow(p.mean, p.sigma) ? Pattern::structured : Pattern::random;
  }
  if (name == "log_uniform") {
    const auto p = op::from_params<data::LogUniformParams>(distribution.params);
    return std::abs(p.high - p.low) < 0x1p-8 ? Pattern::structured : Pattern::random;
  }
  return Pattern::random;
}

}  // namespace numcheck::tolerance
