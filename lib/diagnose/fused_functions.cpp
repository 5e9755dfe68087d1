// Hypotheses that a product was followed by a function that its op has no word for: kernels fuse more than ReLU and GELU.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "diagnose/hypothesis.hpp"
#include "op/field.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::diagnose {
namespace {

double sigmoid(double z) {
  return 1 / (1 + std::exp(-z));
}

struct Function {
  std::string_view name, spelled;
  double (*f)(double);
};

/// Constants as in op/activation_kind.hpp.
constexpr std::array kFunctions = {
    Function{"silu", "SiLU, x / (1 + exp(-x))", [](double z) { return z * sigmoid(z); }},
    Function{"gelu_erf", "GELU in its erf form", [](double z) { return z / 2 * std::erfc(-z / std::numbers::sqrt2); }},
    Function{"qgelu", "the quick GELU, x / (1 + exp(-1.702 x))", [](double z) { return z * sigmoid(1.702 * z); }},
    Function{"srelu", "squared ReLU", [](double z) { return z > 0 ? z * z : 0; }},
    Function{"sigmoid", "a sigmoid", &sigmoid},
    Function{"tanh", "tanh", [](double z) { return std::tanh(z); }}};

double slope_of(double (*f)(double), double z) {
  constexpr double kStep = 0x1p-10;
  return std::abs(f(z + kStep) - f(z - kStep)) / (2 * kStep);
}

/// f of everything that is expected. Errors grow by the slope of f, and f itself is rounded a few times, about as often as |z| is.
void apply(double (*f)(double), op::OutputValues& output, op::OutputYardsticks* yardsticks) {
  const auto grow = [](core::Buffer<float>& errors, std::size_t i, double slope, double more) {
    if (i < errors.size()) {
      errors[i] = static_cast<float>(static_cast<double>(errors[i]) * slope + more);
    }
  };
  constexpr double kRoundings = 4, kUnit = 0x1p-24;
  for (std::size_t i = 0; i < output.value.size(); ++i) {
    const double z = output.value[i], slope = slope_of(f, z), size = std::max(std::abs(z), std::abs(f(z)));
    output.value[i] = f(z);
    if (!std::isfinite(z) || !std::isfinite(slope)) {
      continue;
    }
    grow(output.magnitude, i, std::max(1.0, slope), kRoundings * kUnit * size);
    grow(output.deviation, i, slope, kUnit * size);
    if (yardsticks != nullptr) {  // in units of the terms, whose roundings the model counts
      grow(yardsticks->magnitude, i, std::max(1.0, slope), kRoundings * size);
      grow(yardsticks->deviation, i, slope, size);
    }
  }
}

/// Whether the numbers are at all like f of those that are expected. Of those after another function, nobody knows.
bool is_like(const Evidence& evidence, double (*f)(double)) {
  double before = 0, after = 0;
  for (std::size_t i = 0; i < evidence.delivered.size(); ++i) {
    const double d = evidence.delivered[i], y = evidence.values.value[i];
    if (std::isfinite(d) && std::isfinite(y)) {
      before += (d - y) * (d - y);
      after += (d - f(y)) * (d - f(y));
    }
  }
  constexpr double kPart = 0.25;
  return after < kPart * before;
}

std::vector<Hypothesis> fused_functions(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  if (!op::product_behind(*subject.c.op, subject.c.params, evidence.port).has_value()) {
    return {};
  }
  Trial plain = as_declared(subject);
  const std::size_t field = *op::field_index(*subject.c.op, "epilogue");
  const bool is_plain = plain.c.params[field] == op::Value(std::string("none"));
  plain.c.params[field] = std::string("none");
  std::vector<Hypothesis> all;
  if (!subject.c.op->check(plain.c.params, *subject.c.mode).empty()) {
    return all;
  }
  for (const Function& function : kFunctions) {
    if (is_plain && !is_like(evidence, function.f)) {
      continue;
    }
    Trial trial = plain;
    trial.then = change_of(evidence, [f = function.f](op::OutputValues& output, op::OutputYardsticks* yardsticks) {
      apply(f, output, yardsticks);
    });
    all.push_back({fmt::format("fused_{}", function.name), "epilogue",
                   fmt::format("{} was applied to the sums before they were rounded, not {}", function.spelled,
                               is_plain ? "nothing" : op::param_text(subject.c.params[field])),
                   fmt::format("Look for an activation that is fused into the product or into the layer after it; "
                               "te-numcheck has no epilogue {}: save the product without it, or diagnose the "
                               "activation by itself (activation_fwd).",
                               function.name),
                   std::move(trial)});
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"fused_FUNCTION", "a function after a product that its op has no word for: fused_silu, fused_gelu_erf",
                 &fused_functions}};

}  // namespace

std::span<const CatalogueRow> fused_function_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
