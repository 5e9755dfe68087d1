#include "tolerance/addend_errors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.hpp"
#include "core/upward.hpp"

namespace numcheck::tolerance {
namespace {

constexpr double kUnit = 0x1p-23;  // z and A may be stored in FP32

double squared(double x) {
  return x * x;
}

/// A and sqrt(S2) of an element.
struct Yardstick {
  float magnitude, deviation;
};

Yardstick separated(const model::ErrorModel& model, Addends::Sum addends, double z, Yardstick given) {
  const model::AddendErrors& own = *model.addends;
  const double a = static_cast<double>(given.magnitude), s = static_cast<double>(given.deviation);
  const double whole = a / own.gain;
  const double product = std::min(std::fabs(z - addends.value) + kUnit * std::fabs(z), whole);
  const double terms = std::min(std::max(whole - addends.magnitude, product) + 2 * kUnit * whole, whole);
  const double of_gelu = model.gelu ? model.gelu->bound : 0;
  const double of_epilogue = std::max(0.0, model.bound_magnitude - of_gelu - own.magnitude);
  const double bound = own.gain * (own.magnitude * terms + of_epilogue * whole) + of_gelu * a;
  const double coherent = terms > 0 ? product / terms * product : 0;
  const float kept = std::min(core::upward(bound / model.bound_magnitude), given.magnitude);
  const double less = squared(a) - squared(static_cast<double>(kept));
  const double variance = model.var_second * s * s + (model.var_magnitude - own.cancelled) * less +
                          own.square_gain * (own.value * squared(product) + own.coherent * squared(coherent));
  return {kept, core::upward(std::sqrt(variance / model.var_second))};
}

/// The same where P is not known: it may be as large as A.
Yardstick whole(const model::ErrorModel& model, Yardstick given) {
  const model::AddendErrors& own = *model.addends;
  const double a = static_cast<double>(given.magnitude), s = static_cast<double>(given.deviation);
  const double variance =
      model.var_second * s * s + (own.cancelled + own.square_gain * (own.value + own.coherent)) * a * a;
  constexpr double kLargest = std::numeric_limits<float>::max();
  return {given.magnitude, core::upward(std::min(std::sqrt(variance / model.var_second), kLargest))};
}

}  // namespace

Addends::Sum Addends::at(std::int64_t index) const noexcept {
  const double of_c = c == nullptr ? 0 : c_factor * c[index];
  const double of_bias = bias == nullptr ? 0 : bias_factor * bias[index % columns];
  return {of_c + of_bias, std::fabs(of_c) + std::fabs(of_bias)};
}

Addends addends_of(const op::GemmParams& params, std::span<const op::Operand> operands) {
  Addends addends;
  addends.columns = std::max<std::int64_t>(params.n, 1);
  if (const op::Operand* c = op::find_operand(operands, "c"); c != nullptr && params.beta != 0) {
    addends.c = c->data;
    addends.c_factor = params.beta * c->scale;
  }
  if (const op::Operand* bias = op::find_operand(operands, "bias"); bias != nullptr && params.bias) {
    addends.bias = bias->data;
    addends.bias_factor = bias->scale;
  }
  return addends;
}

bool separates_addends(const model::ErrorModel& model) noexcept {
  return model.addends.has_value() && model.var_second > 0 && model.bound_magnitude > 0 &&
         std::isfinite(model.bound_magnitude);
}

void separate_addends(const model::ErrorModel& model, const Addends& addends, const Sums& sums,
                      std::span<float> magnitude, std::span<float> deviation) {
  constexpr std::size_t kPerTask = std::size_t{1} << 14;
  core::parallel_chunks(magnitude.size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const double z = sums.wide.empty() ? static_cast<double>(sums.narrow[i]) : sums.wide[i];
      const Addends::Sum beside = addends.at(sums.indices.empty() ? static_cast<std::int64_t>(i) : sums.indices[i]);
      const Yardstick given = {magnitude[i], deviation[i]};
      if (!std::isfinite(given.magnitude) || !std::isfinite(given.deviation)) {
        continue;
      }
      const bool is_known = static_cast<double>(given.magnitude) < model.overflow_magnitude && std::isfinite(z) &&
                            std::isfinite(beside.magnitude);
      const Yardstick own = is_known ? separated(model, beside, z, given) : whole(model, given);
      magnitude[i] = own.magnitude;
      deviation[i] = own.deviation;
    }
  });
}

model::ErrorModel without_addends(model::ErrorModel model) {
  model.var_value = std::max(0.0, model.var_value - model.addends->value);
  model.var_coherent = 0;
  model.var_magnitude = std::max(0.0, model.var_magnitude - model.addends->cancelled);
  return model;
}

}  // namespace numcheck::tolerance
