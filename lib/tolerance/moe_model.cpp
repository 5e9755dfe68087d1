#include "tolerance/moe_model.hpp"

#include <algorithm>
#include <cmath>

#include "core/codec.hpp"
#include "tolerance/tracked_model.hpp"

namespace numcheck::tolerance {
namespace {

/// Of the probabilities' rounding to a format.
double shared_error(const op::Operand& probs, core::Dtype format) {
  double sum = 0, squares = 0, count = 0;
  for (std::size_t i = 0; i < probs.elements(); ++i) {
    const double p = probs.data[i], error = p == 0 ? 0 : (core::round_to(p, format) - p) / p;
    if (std::isfinite(error)) {
      sum += error;
      squares += error * error;
      ++count;
    }
  }
  if (count == 0) {
    return 0;
  }
  const double mean = sum / count;
  return std::fabs(mean) + 3 * std::sqrt(std::max(0.0, squares / count - mean * mean) / count);
}

}  // namespace

model::ErrorModel moe_unpermute_error_model(const model::ModelRequest& request, std::string_view port) {
  model::ErrorModel model = tracked_error_model(request, port);
  if (const op::Operand* probs = op::find_operand(request.operands, "probs"); probs != nullptr) {
    model.slope_slack += shared_error(*probs, request.mode->first);
  }
  return model;
}

}  // namespace numcheck::tolerance
