#include "random_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "data/distribution.hpp"
#include "op/gemm.hpp"

namespace numcheck::detect {
namespace {

using op::GemmParams;

/// Draws without std distributions, whose results differ between libraries.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t index) : engine_(seed * 0x9e3779b97f4a7c15ULL + index) { engine_.discard(4); }

  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  [[nodiscard]] bool one_in(std::int64_t n) { return between(1, n) == 1; }
  template <class T, std::size_t N>
  [[nodiscard]] const T& of(const std::array<T, N>& values) {
    return values[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(N) - 1))];
  }
  [[nodiscard]] std::uint64_t word() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

void draw_shape(Dice& dice, GemmParams& p) {
  switch (dice.between(0, 9)) {
    case 0:
      p.m = p.n = p.k = 1;
      break;
    case 1:
    case 2:
      p.m = dice.between(1, 9);
      p.n = dice.between(1, 9);
      p.k = dice.between(1, 40);
      break;
    case 3:
    case 4:
      p.m = dice.between(4, 12) * 8;
      p.n = dice.between(4, 12) * 8;
      p.k = dice.between(1, 4) * 16;
      break;
    case 5:
      p.m = dice.between(8, 16);
      p.n = dice.between(8, 16);
      p.k = dice.between(500, 3000);
      break;
    case 6:
      p.m = 1;
      p.n = dice.between(1, 200);
      p.k = dice.between(1, 600);
      break;
    case 7:
      p.m = dice.between(16, 40);
      p.n = dice.between(16, 40);
      p.k = 1 << dice.between(0, 8);
      break;
    default:
      p.m = dice.between(1, 48);
      p.n = dice.between(1, 48);
      p.k = dice.between(1, 160);
      break;
  }
}

void draw_options(Dice& dice, const op::Mode& mode, GemmParams& p) {
  p.batch = dice.one_in(5) ? dice.between(2, 4) : 1;
  p.trans_a = dice.one_in(2);
  p.trans_b = dice.one_in(2);
  constexpr std::array kFactors = {1.0, 1.0, 1.0, 1.0, 0.5, -1.25, 0.1, 3.7};
  p.alpha = dice.of(kFactors);
  p.beta = dice.one_in(3) ? dice.of(kFactors) : 0;
  p.bias = dice.one_in(4);
  constexpr std::array kEpilogues = {"none", "none", "none", "relu", "gelu"};
  p.epilogue = dice.of(kEpilogues);
  if (mode.scaled) {
    constexpr std::array kOutputs = {"default", "fp32", "fp16", "fp8_e4m3", "fp8_e5m2"};
    constexpr std::array kAccumulate = {"default", "fast", "split"};
    p.output = dice.of(kOutputs);
    p.accumulate = dice.of(kAccumulate);
    if (p.output == "fp8_e5m2" && mode.first == mode.second) {
      p.output = "fp8_e4m3";
    }
  } else if (dice.one_in(2) && mode.compute == op::Compute::fp32) {
    p.output = "fp32";
  }
  p.pad_a = dice.one_in(4) ? dice.between(1, 9) : 0;
  p.pad_b = dice.one_in(4) ? dice.between(1, 9) : 0;
  p.pad_d = dice.one_in(4) ? dice.between(1, 9) : 0;
  p.misalign = dice.one_in(4) ? dice.between(1, 9) : 0;
}

data::Distribution draw_distribution(Dice& dice) {
  constexpr std::array kNames = {"normal",     "normal",     "positive", "uniform",  "outliers",   "log_uniform",
                                 "large_mean", "structured", "ties",     "constant", "activations"};
  data::Distribution d = data::make_distribution(dice.of(kNames));
  if (d.name == "constant") {
    constexpr std::array kConstants = {1.0, 0.1, -3.0};
    d.params.at(0) = dice.of(kConstants);
  } else if (d.name == "normal" && dice.one_in(4)) {
    constexpr std::array kSigmas = {1e-3, 1e3, 30.0};
    d.params.at(0) = dice.of(kSigmas);
  }
  return d;
}

plan::InputSpec draw_inputs(Dice& dice) {
  plan::InputSpec inputs;
  if (dice.one_in(6)) {
    inputs.common = data::make_distribution("exact");
    return inputs;
  }
  if (dice.one_in(12)) {
    inputs.common = data::make_distribution("specials");
    return inputs;
  }
  inputs.common = draw_distribution(dice);
  if (dice.one_in(4)) {
    inputs.ports["a"] = draw_distribution(dice);
  } else if (dice.one_in(5)) {
    inputs.ports["a"] = data::make_distribution("constant");  // dY = 1, value 1
  }
  return inputs;
}

/// Any FP32 significand; often few bits, or one unit off them.
double draw_constant(Dice& dice) {
  const std::int64_t bits = dice.between(1, 23);
  const double significand =
      1 + std::ldexp(static_cast<double>(dice.between(0, (std::int64_t{1} << bits) - 1)), -static_cast<int>(bits));
  return std::ldexp(significand + (dice.one_in(3) ? 0x1p-23 : 0), static_cast<int>(dice.between(-3, 3)));
}

/// A distribution whose values share a sign, and their mean.
std::pair<data::Distribution, double> draw_one_signed(Dice& dice) {
  constexpr std::array kNames = {"constant", "large_mean", "positive", "uniform", "log_uniform"};
  data::Distribution d = data::make_distribution(dice.of(kNames));
  const double value = draw_constant(dice);
  const double width = value * std::ldexp(1.0, -static_cast<int>(dice.between(1, 8)));
  if (d.name == "constant") {
    d.params.at(0) = value;
    return {d, value};
  }
  if (d.name == "positive") {
    return {d, 0.5};
  }
  if (d.name == "log_uniform") {
    d.params = {0.0, 1.0, false};
    return {d, 1 / std::log(2.0)};
  }
  d.params = d.name == "uniform" ? op::Params{value - width, value + width} : op::Params{value, width};
  return {d, value};
}

/// Products that share a sign; C and bias, where the case has them, cancel little of their sum, most of it, or all.
void draw_cancellation(Dice& dice, GemmParams& p, plan::InputSpec& inputs) {
  const auto [a, mean_a] = draw_one_signed(dice);
  const auto [b, mean_b] = draw_one_signed(dice);
  inputs.common = data::make_distribution("normal");
  inputs.ports = {{"a", a}, {"b", b}};
  double rest = -p.alpha * static_cast<double>(p.k) * mean_a * mean_b;
  const auto share = [&] { return static_cast<double>(dice.between(-8, 24)) / 16 + 0x1p-7; };
  const auto part = [&](double value) {
    data::Distribution d = data::make_distribution(dice.one_in(2) ? "constant" : "large_mean");
    d.params.at(0) = value;
    if (d.name == "large_mean") {
      d.params.at(1) = std::abs(value) * std::ldexp(1.0, -static_cast<int>(dice.between(2, 8)));
    }
    return d;
  };
  if (p.beta != 0) {
    const double value = rest * share();
    inputs.ports["c"] = part(value / p.beta);
    rest -= value;
  }
  if (p.bias) {
    inputs.ports["bias"] = part(rest * share());
  }
}

/// Scales of rows or blocks, for one product of codes that are stored with k within rows.
void draw_scales(Dice& dice, int sm, GemmParams& p, plan::Case& c) {
  constexpr std::array kScalings = {"outer_vector", "1x128_1x128", "1x128_128x128", "128x128_1x128"};
  p.scaling = dice.of(kScalings);
  p.power_of_two = dice.one_in(3);
  if (sm >= 100 && dice.one_in(2)) {
    p.scaling = "mxfp8";
    p.power_of_two = false;
    if (dice.one_in(2)) {
      p.scaling = "nvfp4";
      c.mode = op::find_mode("fp4_e2m1");
    }
  }
  p.trans_a = false;
  p.trans_b = true;
  p.batch = 1;
  if (p.scaling != "outer_vector") {
    p.accumulate = "split";
  }
  if (p.output.starts_with("fp8")) {
    p.output = "default";
  }
  if (dice.one_in(3)) {
    p.k += 128 * dice.between(1, 4);
  }
}

}  // namespace

RandomCase random_case(std::uint64_t seed, std::uint64_t index) {
  Dice dice(seed, index);
  RandomCase out;
  plan::Case& c = out.c;
  c.op = &op::gemm();
  constexpr std::int64_t kLast = 10;  // the one after it, fp4_e2m1, is drawn with its scales
  c.mode = op::find_mode(c.op->modes[static_cast<std::size_t>(dice.between(0, kLast))]);
  constexpr std::array kPlain = {80, 89, 90, 90, 100};
  constexpr std::array kWithFp8 = {89, 90, 90, 100};
  out.sm = c.mode->scaled ? dice.of(kWithFp8) : dice.of(kPlain);
  if (c.mode->compute == op::Compute::emulated_bf16x9 && out.sm >= 100) {
    out.sm = 90;  // from sm_100 on the request is emulated, which is not modelled
  }
  GemmParams p;
  draw_shape(dice, p);
  draw_options(dice, *c.mode, p);
  c.backend = "sim";
  c.inputs = draw_inputs(dice);
  c.algorithms.kind = dice.one_in(3) ? plan::AlgorithmSpec::Kind::all : plan::AlgorithmSpec::Kind::heuristic;
  c.seed = dice.word() % 1'000'000'000;
  if (!c.inputs.exact_leg() && dice.one_in(8)) {
    draw_cancellation(dice, p, c.inputs);
  }
  if (c.mode->scaled && dice.one_in(3)) {
    draw_scales(dice, out.sm, p, c);
  }
  const auto is = [&c](const char* drawn) { return c.inputs.common == data::make_distribution(drawn); };
  const bool plain = c.inputs.ports.empty() && (is("normal") || is("uniform") || is("positive"));
  const bool overflows = !plain && op::gemm_output_dtype(p, *c.mode) == core::Dtype::fp16;
  constexpr std::int64_t kTelling = 32;  // fewer outputs may not show how slices were added
  if (overflows || is("specials") || p.batch * p.m * p.n < kTelling) {
    c.algorithms = {plan::AlgorithmSpec::Kind::top, 3};  // without those that add slices in the output's format
  }
  c.params = op::to_params(p);
  plan::identify(c);
  return out;
}

}  // namespace numcheck::detect
