#include "tolerance/attention_products.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "tolerance/accumulation.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {

using core::Dtype;

namespace {

constexpr double kDeviations = 6;

}  // namespace

AttentionProducts::AttentionProducts(const model::ModelRequest& request) {
  const bool stored_fp32 = request.mode->first == Dtype::fp32;
  chain = request.arithmetic == model::MatrixArithmetic::fp32_chain ||
          (stored_fp32 && request.expected == model::PrecisionClass::fp32);
  format = chain ? Dtype::fp32 : stored_fp32 ? Dtype::tf32 : request.mode->first;
  scaled = request.mode->scaled;
  arithmetic = model::gemm_arithmetic(request.sm, *request.mode, false, !chain);
}

SumError AttentionProducts::sum(std::int64_t terms) const {
  Accumulation total = fma_accumulation(terms);
  if (!chain) {
    total = either_of(fused_accumulation(arithmetic, terms, 2 * core::dtype_info(format).fraction_bits), total);
  }
  const double v = tf32_unit(), slope = total.slope + total.slope_coherent;
  return {total.magnitude + 2 * v + v * v,
          total.second + 2 * kRoundVariance * v * v,
          total.value,
          total.coherent,
          slope * slope,
          total.star,
          total.absolute};
}

bool is_ordered(const model::ModelRequest& request) {
  return request.first_pattern.order != data::Order::random || request.second_pattern.order != data::Order::random;
}

bool is_any_ordered(const model::ModelRequest& request) {
  return is_ordered(request) || request.others_ordered;
}

bool scores_are_constant(const model::ModelRequest& request) {
  return request.first_pattern.order == data::Order::constant && request.second_pattern.order == data::Order::constant;
}

namespace {

/// Of an operand's numbers, relative to their mean; infinite if it is more than `most`, or if nothing is known of them.
double relative_deviation(const op::Operand* operand, double most) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::span<const double> x(operand == nullptr ? nullptr : operand->data,
                                  operand == nullptr ? 0 : operand->elements());
  const auto count = static_cast<double>(x.size());
  // No number is further from the mean than sqrt(count) deviations: of most operands two numbers tell.
  const double reach = x.empty() ? 0 : 4 * std::sqrt(count) * most * std::fabs(x[0]);
  if (!std::ranges::all_of(x, [&](double one) { return std::fabs(one - x[0]) <= reach; })) {
    return kInfinity;
  }
  double mean = 0, squares = 0;
  for (const double one : x) {
    mean += one / count;
  }
  for (const double one : x) {
    squares += (one - mean) * (one - mean) / count;
  }
  const double deviation = std::sqrt(squares) / std::fabs(mean);
  return deviation <= most ? deviation : kInfinity;
}

}  // namespace

bool products_are_alike(const model::ModelRequest& request, std::int64_t d) {
  const double most = static_cast<double>(d) * kUnit32;
  return std::hypot(relative_deviation(request.first, most), relative_deviation(request.second, most)) <= most;
}

bool has_few_values(const model::ModelRequest& request) {
  return request.exact_leg || request.constant_inputs || request.first_pattern.few_values ||
         request.second_pattern.few_values || is_ordered(request);
}

bool has_one_sign(const model::ModelRequest& request) {
  constexpr double kOneSign = 0.9;
  return request.first_pattern.coherence > kOneSign || request.second_pattern.coherence > kOneSign;
}

bool has_heavy_tails(const model::ModelRequest& request) {
  constexpr double kHeavy = 10;
  for (const op::Operand* operand : {request.first, request.second}) {
    double squares = 0, fourths = 0, count = 0;
    for (std::size_t i = 0; operand != nullptr && i < operand->elements(); ++i) {
      const double x2 = operand->data[i] * operand->data[i];
      if (x2 * x2 < std::numeric_limits<double>::infinity()) {
        squares += x2;
        fourths += x2 * x2;
        ++count;
      }
    }
    if (fourths * count > kHeavy * squares * squares) {
      return true;
    }
  }
  return false;
}

bool weights_differ(const model::ModelRequest& request, const op::AttentionParams& p) {
  // The weight of a single key is 1, and sums of a few 8-bit numbers lie in the middle between two others.
  constexpr std::int64_t kFewKeys = 16;
  const std::int64_t left = p.window_left < 0 ? p.sk : p.window_left;
  const std::int64_t right = p.mask.ends_with("causal") || p.mask.ends_with("bottom_right") ? 0
                             : p.window_right < 0                                           ? p.sk
                                                                                            : p.window_right;
  return request.mode->scaled && !has_few_values(request) && p.bias == "none" &&
         std::min(p.sk, left + right + 1) >= kFewKeys && !has_one_sign(request);
}

namespace {

/// True if an operand's first numbers have hardly any magnitudes: weights are then few numbers as well.
bool has_few_magnitudes(const op::Operand* operand) {
  constexpr std::size_t kLooked = 256, kFew = 8;
  std::set<double> magnitudes;
  for (std::size_t i = 0; operand != nullptr && i < std::min(kLooked, operand->elements()); ++i) {
    magnitudes.insert(std::fabs(operand->data[i]));
  }
  return operand != nullptr && magnitudes.size() <= std::min(kFew, operand->elements() / 2);
}

}  // namespace

bool rows_differ(const model::ModelRequest& request) {
  if (has_few_magnitudes(request.first) || has_few_magnitudes(request.second)) {
    return false;
  }
  return AttentionProducts(request).tf32_unit() == 0 && !request.constant_inputs && !has_few_values(request) &&
         !has_one_sign(request);
}

bool has_one_error(const model::ModelRequest& request) {
  const auto p = op::from_params<op::AttentionParams>(*request.params);
  return request.constant_inputs || (request.rounding.score_gradients && p.softcap != 0 && has_few_values(request));
}

void judge_by_bound(const model::ModelRequest& request, std::span<const float> bound, std::span<float> deviation) {
  if (!has_one_error(request)) {
    return;
  }
  for (std::size_t at = 0; at < bound.size(); ++at) {
    deviation[at] = std::max(deviation[at], bound[at] / static_cast<float>(kAttentionKappa));
  }
}

double truncation_slope(const AttentionProducts& products, std::int64_t terms, const op::OutputValues& output) {
  double coherence = 0, elements = 0;
  for (std::size_t at = 0; at < output.value.size(); ++at) {
    const auto magnitude = static_cast<double>(output.magnitude[at]);
    const bool known = magnitude > 0 && magnitude < static_cast<double>(std::numeric_limits<float>::max());
    if (known && std::isfinite(output.value[at])) {
      coherence += std::fabs(output.value[at]) / magnitude;
      ++elements;
    }
  }
  return elements == 0 ? 0 : std::sqrt(products.sum(terms).coherent) * coherence / elements;
}

double fp8_score_swing(std::int64_t d) {
  constexpr int kSm = 89, kFractionBits = 6;
  const model::Arithmetic arithmetic = model::gemm_arithmetic(kSm, *op::find_mode("fp8_e4m3"), false, false);
  const Accumulation sum = fused_accumulation(arithmetic, d, kFractionBits);
  return kDeviations * std::sqrt(sum.second + sum.value);
}

double score_swing(std::int64_t d, bool tf32) {
  constexpr int kSm = 80;  // its sums are the shortest
  const core::DtypeInfo& format = core::dtype_info(tf32 ? Dtype::tf32 : Dtype::bf16);
  const model::Arithmetic arithmetic = model::gemm_arithmetic(kSm, *op::find_mode(format.name), false, tf32);
  const Accumulation sum = either_of(fused_accumulation(arithmetic, d, 2 * format.fraction_bits), fma_accumulation(d));
  const double operands = tf32 ? 2 * kRoundVariance * format.unit_roundoff * format.unit_roundoff : 0;
  return kDeviations * std::sqrt(sum.second + sum.value + operands + 16 * kRoundVariance * kUnit32 * kUnit32);
}

double AttentionProducts::unit() const {
  return chain ? 0 : core::dtype_info(format).unit_roundoff;
}

}  // namespace numcheck::tolerance
