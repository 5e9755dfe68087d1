#include "tolerance/alpha_first.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/dtype.hpp"
#include "data/inputs.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {
namespace {

/// Whether alpha times a number may have more bits than that number.
bool may_round(const model::ModelRequest& request, double alpha) {
  return request.arithmetic == model::MatrixArithmetic::by_mode_alpha_first &&
         request.mode->first == core::Dtype::fp32 && alpha != 0 && (std::abs(alpha) < 1 || !is_power_of_two(alpha));
}

/// Whether alpha times a number of the operand may be subnormal.
bool may_be_subnormal(const op::Operand* operand, double alpha, core::Dtype format) {
  if (operand == nullptr || operand->data == nullptr) {
    return true;
  }
  const double least = data::absolute_min(std::span(operand->data, operand->elements()));
  return least * std::abs(alpha) < std::ldexp(1.0, core::dtype_info(format).emin);
}

}  // namespace

void add_alpha_first(const GemmRequest& g, model::ErrorModel& model) {
  if (!may_round(g.request, g.p.alpha)) {
    return;
  }
  const double step = core::dtype_info(g.first).min_subnormal;
  const double of_a = may_be_subnormal(g.request.first, g.p.alpha, g.first) ? g.request.second_max * step : 0;
  const double of_b = may_be_subnormal(g.request.second, g.p.alpha, g.first) ? g.request.first_max * step : 0;
  const double most = std::max(of_a, of_b);
  const auto k = static_cast<double>(g.products);
  model.slope_absolute += k * most / 2;
  model.bound_absolute += k * most / 2;
  model.var_absolute += k * most * most / 12;
}

double vanishes_below(const model::ModelRequest& request, double alpha) {
  return may_round(request, alpha) ? core::dtype_info(core::Dtype::fp32).min_subnormal / std::abs(alpha) : 0;
}

}  // namespace numcheck::tolerance
