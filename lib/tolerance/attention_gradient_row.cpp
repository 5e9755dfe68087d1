#include "tolerance/attention_gradient_row.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace numcheck::tolerance {
namespace {

constexpr double kSmallestNormal = std::numeric_limits<float>::min();

double square(double x) {
  return x * x;
}

/// The format to which what an output is a sum of is rounded before it is multiplied.
core::Dtype rounded_format(const model::ModelRequest& request, const AttentionProducts& products,
                           std::string_view port) {
  return products.scaled && port != "dv" ? request.mode->second : products.format;
}

/// Adding the same number n times in FP32 errs by the same part of an ulp throughout a binade: half of all additions are
/// in the last one, (n / 2)^2 u^2 / 3 of the square of the sum.
double equal_terms(double n) {
  return square(n * kUnit32) / 12;
}

/// Of a weight whose error has the relative variance z, in units of its own square.
double mean_square(double z) {
  return std::exp(2 * std::min(z, 40.0));
}

}  // namespace

GradientError sum_of(const GradientError& a, const GradientError& b) {
  return {a.bound + b.bound, a.variance + b.variance};
}

GradientCommon::GradientCommon(const model::ModelRequest& request, const op::AttentionParams& p, std::string_view port)
    : products(request),
      factor(port == "dv" || (port == "dbias" && p.bias != "pre_scale") ? 1 : std::fabs(p.factor())),
      keep_scale(p.keep_scale()),
      width(static_cast<double>(port == "dv" ? p.value_channels() : p.d)),
      steps(static_cast<double>(p.value_channels()) + 4),
      rounded(rounded_format(request, products, port)),
      unit(products.rounds_weights() ? core::dtype_info(rounded).unit_roundoff : 0),
      stored(products.tf32_unit() + unit),
      lost(products.rounds_weights() && !products.scaled ? core::dtype_info(rounded).min_subnormal / 2 : 0),
      lost_operand(products.tf32_unit() == 0 ? 0 : core::dtype_info(core::Dtype::tf32).min_subnormal / 2),
      operand(kRoundVariance * square(products.tf32_unit())),
      largest(kMayOverflow),
      scores(products.sum(p.d)),
      values(products.sum(p.value_channels())),
      swing(p.softcap == 0 ? std::numeric_limits<double>::infinity() : 2 * p.softcap),
      equal_values(equal_terms(static_cast<double>(p.value_channels()))),
      of_values(port == "dv"),
      of_queries(port == "dq"),
      ordered(is_any_ordered(request) || request.first_pattern.few_values || request.second_pattern.few_values),
      drops(p.has_dropout() && (port == "dq" || port == "dk")) {
  if (products.rounds_weights() && !products.scaled && port != "dbias") {
    largest = std::min(largest, core::dtype_info(rounded).max_finite);
  }
  if (scores_are_constant(request) || products_are_alike(request, p.d)) {
    scores.value += equal_terms(static_cast<double>(p.d));
  }
  scores.value += ordered ? equal_operands() : 0;
  values.value += ordered || request.constant_inputs ? equal_operands() : 0;
  values.bound += p.has_dropout() ? 2 * kUnit32 : 0;
  values.value += p.has_dropout() ? 4 * kRoundVariance * kUnit32 * kUnit32 : 0;
}

double GradientCommon::equal_operands() const {
  return square(2 * products.tf32_unit()) / 3;
}

double GradientCommon::statistic(double squares, double seconds) const {
  return scores.second * seconds + (scores.value + 4 * kRoundVariance * kUnit32 * kUnit32) * squares;
}

GradientError GradientCommon::offset(const op::OutputValues& output, std::size_t head) const {
  const auto fact = [&](OffsetFact which) { return read_fact(which, output, head); };
  const double first = bound() * fact(OffsetFact::products) + arithmetic_unit() * fact(OffsetFact::arguments);
  const double sum = fact(OffsetFact::sum);
  return {sum == 0 ? 0 : first * std::exp(first / sum), statistic(fact(OffsetFact::scores), fact(OffsetFact::seconds))};
}

GradientElement::GradientElement(const op::OutputValues& judged, std::size_t at) {
  const auto read = [&](std::size_t which, double& x) {
    if (judged.row_facts.size() > which && !judged.row_facts[which].empty()) {
      x = static_cast<double>(judged.row_facts[which][at]);
    }
  };
  read(kMean, mean);
  read(kParts, parts);
  read(kSaturation, saturation);
  read(kDropped, dropped);
  read(kWeightRatio, weight_ratio);
  read(kSpreadRatio, spread_ratio);
  read(kLengthRatio, length_ratio);
  read(kScored, scored);
}

GradientRowErrors::GradientRowErrors(const GradientCommon& common, const GradientRounding& early,
                                     const GradientRow& facts)
    : common_(common), early_(early), facts_(facts), terms_(fact(GradientFact::terms)) {
  constexpr double u = kUnit32;
  growth_ =
      std::exp(common.bound() * fact(GradientFact::statistic_product) + u * fact(GradientFact::statistic_argument));
  const double z = common.scores.second * fact(GradientFact::score_second) +
                   common.scores.value * fact(GradientFact::score_square) +
                   (common.ordered ? common.scores.value * square(fact(GradientFact::largest_product)) : 0) +
                   u * u * (fact(GradientFact::argument_square) + 3) + (common.of_queries ? 0 : of_statistic());
  weights_ = z;
  growth2_ = mean_square(z);
  if (!common.of_values) {
    equal_values_ = fact(GradientFact::equal_values) * common.equal_values;
    const double of_value = common.values.value + equal_values_;
    const double of_products = growth2_ * common.values.second * fact(GradientFact::gradient_second);
    spread_ = growth2_ * (of_value * fact(GradientFact::gradient_square) + u * u * fact(GradientFact::dot_variance));
    // Twice: of dp and D.
    spread_ += common.ordered ? 2 * growth2_ * of_value * square(fact(GradientFact::products)) : 0;
    alike_spread_ = fact(GradientFact::alike_gradients) * (spread_ + of_products) * fact(GradientFact::equal_pairs);
    spread_ += common.drops ? 0 : of_products;
  }
  stored_ = early.row(facts, common.factor, growth_);
  flushed_ = kFlush * (common.late_factor() + std::max(1.0, common.factor) * fact(GradientFact::largest_gradient)) +
             stored_.lost;
  // Weights may be infinite where those of rho are 0 in FP32.
  overflows_ = stored_.unknown || !(growth_ < kMayOverflow) || overflows();
}

bool GradientRowErrors::overflows() const {
  if (!(fact(GradientFact::largest_change) < kMayOverflow)) {
    return true;
  }
  if (common_.of_values) {
    return false;
  }
  const double term = fact(GradientFact::largest_term), off = stored_.bound + carried_error();
  if (!((term + off) * std::max(1.0, common_.factor) < common_.largest)) {
    return true;
  }
  // The largest gradient of all has a scale that makes it the largest number of the format.
  const core::DtypeInfo& format = core::dtype_info(common_.rounded);
  const double most = fact(GradientFact::spacing) / format.min_subnormal * format.max_finite;
  return most > 0 && term * common_.factor > most * (1 + 0x1p-10);
}

bool GradientRowErrors::may_overflow(double rho) const {
  return overflows_ ||
         !(rho * std::max(1.0, fact(GradientFact::weight) / std::min(1.0, common_.factor)) < kMayOverflow);
}

GradientError GradientRowErrors::gradient(double y, double rho, double squares, const Means& means,
                                          const GradientElement& element) const {
  constexpr double u = kUnit32;
  const SumError sum = common_.products.sum(static_cast<std::int64_t>(terms_));
  const double weight = fact(GradientFact::weight);
  // At least the sum of magnitudes. Where FP32 does not hold R, which may be multiplied by inputs of 1e30, all terms count.
  const double all = weight >= kSmallestNormal ? rho * weight : std::sqrt(terms_ * squares);
  const double relative = common_.unit + sum.bound + (terms_ + 16 + common_.products.scale_steps()) * u;
  // The largest partial sum, and what rounding errors of one sign add up to.
  const double size = common_.ordered ? std::max(std::fabs(y), all) : std::fabs(y);
  const double lost = common_.lost * common_.late_factor() + fact(GradientFact::spacing) / 2;
  const double lost_operands = common_.lost_operand * common_.factor * fact(GradientFact::weight);
  const double length = fact(GradientFact::length);
  const SumError values = common_.of_values ? SumError() : common_.values;
  const double of_row =
      common_.operand * fact(GradientFact::own_second) + values.common * square(fact(GradientFact::own_dot)) +
      u * u * fact(GradientFact::own_dot_variance) + equal_values_ * square(fact(GradientFact::own_dot));
  const double all_alike =
      y * y * (1 + 0x1p-12) > terms_ * squares ? equal_terms(terms_) + common_.equal_operands() : 0;
  const double alike_terms = std::max(all_alike, square(u * fact(GradientFact::equal_weights)) / 3);
  // All terms lose the same near underflow: of terms of one sign, that adds up. Random ones have y^2 near W.
  constexpr double kRandom = 16;
  const double one_sign = squares == 0 ? 0 : std::max(0.0, std::min(terms_, y * y / squares) - kRandom);
  const double capped = std::min(fact(GradientFact::largest_score), common_.swing / 2);
  const double of_cap = std::isinf(common_.swing) ? 0 : square(2 * u * capped);
  const double of_value =
      sum.value + values.common + common_.operand * fact(GradientFact::score_common) +
      (common_.scores.common + 2 * kRoundVariance * u * u) * square(fact(GradientFact::score_mean)) + of_cap +
      (common_.of_queries ? of_statistic() : 0) + 2 * kRoundVariance * square(u * fact(GradientFact::own_statistic));
  const double of_shift = common_.stored == 0 ? 0
                          : common_.ordered   ? kRoundVariance * square(common_.stored * all)
                                              : square(fact(GradientFact::shift) * y);
  const double of_common =
      common_.stored == 0 || common_.of_values ? 0 : square(element.mean * fact(GradientFact::common_shift));
  const double of_scores = common_.of_queries || stored_.scores == 0 ? squares : std::max(squares, means.squares);
  const double per_element = square(length) / 3 * element.length_ratio / common_.width * (1 + one_sign);
  GradientError e;
  e.bound = relative * all + (1 + relative) * rho * (carried_error() + stored_.bound) +
            (lost + flushed_) * std::sqrt(terms_) * length + terms_ * common_.late_factor() * kFlush +
            std::sqrt(terms_) * lost_operands;
  const double of_pairs =
      square(rho) * spread_ * element.spread_ratio + growth2_ * values.second * square(element.dropped);
  e.variance = square(lost_operands) / 3 + (terms_ + 1) / 12 * square(common_.late_factor() * kUnderflow) +
               slope_errors(rho, means.rho2) + (common_.ordered ? common_.equal_operands() / 4 * y * y : 0) +
               squares * (kRoundVariance * (square(common_.unit) + 4 * u * u) + sum.second + values.value) +
               std::max(squares, fact(GradientFact::alike_scores) * size * size) * weights(element) +
               alike_terms * y * y + std::max(of_pairs, square(element.mean) * alike_spread_) +
               square(element.mean) * (growth2_ * of_row + stored_.dots) + square(size) * of_value +
               std::max(0.0, std::max(of_shift, of_common) - kRoundVariance * square(common_.stored) * squares) +
               (all == 0 ? 0 : sum.coherent * square(y * y / all)) +
               (common_.ordered ? std::min(square(all), square((lost + flushed_) * length) / 3 * terms_)
                                : std::min(std::max(squares, y * y), square(lost + flushed_) * per_element)) +
               (early_.what().score_gradients ? square(stored_.lost) * per_element : 0) +  // of dp, which D may cancel
               square(lost_by_difference()) * per_element +
               (of_scores * stored_.scores + squares * stored_.weights) * std::max(1.0, element.weight_ratio) +
               square(rho) * stored_.spread * std::max(1.0, element.spread_ratio) + square(y) * stored_.common;
  return widened(sum_of(e, early_.parts(facts_, rho, element.parts)));
}

double GradientRowErrors::lost_by_difference() const {
  // Each product of dp and of D is rounded to a multiple of kUnderflow, and these need not be the same ones.
  return common_.of_values ? 0 : std::sqrt(2 * common_.width) * kUnderflow / 2 * std::max(1.0, common_.factor);
}

GradientError GradientRowErrors::largest(double of_all) const {
  const double of_row = std::min(of_all, common_.factor * fact(GradientFact::weight));
  // Keys of zeros leave nothing of the row's means, which are weighted with |k|^2.
  const double unweighted =
      fact(GradientFact::gradient_second) == 0 ? common_.values.second * square(fact(GradientFact::largest_change)) : 0;
  const GradientError e = {
      common_.factor * carried_error() + flushed_,
      square(of_row) * (weights_ * growth2_ + common_.scores.common * square(fact(GradientFact::score_mean))) +
          square(common_.factor) *
              (spread_ + unweighted + common_.values.common * fact(GradientFact::gradient_square))};
  const bool known = e.bound < kUndeterminedBound && !std::isnan(e.variance) && !may_overflow(0);
  return known ? e : GradientError{kUndeterminedBound, kUndeterminedBound};
}

double GradientRowErrors::largest_change() const {
  return common_.factor * fact(GradientFact::largest_term) * (1 + 0x1p-20);  // facts are FP32
}

GradientError GradientRowErrors::bias(double y, double rho, double squares, const GradientElement& element) const {
  constexpr double u = kUnit32;
  const double saturation = element.saturation, g = common_.bound();
  const double argument = g * (fact(GradientFact::largest_product) + fact(GradientFact::statistic_product)) +
                          u * (fact(GradientFact::largest_argument) + fact(GradientFact::statistic_argument)) +
                          u * (terms_ + 4);
  GradientError e;
  e.bound = std::sqrt(terms_) * growth_ *
                (std::sqrt(squares) * argument + rho * (g + common_.steps * u) + 8 * u * saturation) +
            terms_ * flushed_;
  e.variance =
      squares * (weights(element) + common_.scores.common * fact(GradientFact::score_square) + common_.values.value +
                 kRoundVariance * (terms_ / 6 + 4) * u * u) +
      square(rho) * (spread_ * element.spread_ratio + common_.values.common * fact(GradientFact::gradient_square)) +
      kRoundVariance / 3 * terms_ * square(u * y) + square(flushed_) + 64.0 / 3 * square(u * saturation);
  return widened(sum_of(e, early_.bias(stored_, facts_,
                                       {.y = y,
                                        .rho = rho,
                                        .squares = squares,
                                        .saturation = saturation,
                                        .scored = element.scored,
                                        .weight_ratio = std::max(1.0, element.weight_ratio),
                                        .spread_ratio = std::max(1.0, element.spread_ratio)})));
}

double GradientRowErrors::slope_errors(double rho, double mean_rho2) const {
  if (std::isinf(common_.swing) || common_.of_values) {
    return 0;
  }
  constexpr double kSlope = 64.0 / 3;  // as in GradientFact::dot_variance
  const double of_slopes = growth2_ * kSlope * square(kUnit32) * fact(GradientFact::saturation) + stored_.slopes;
  return of_slopes * std::max(0.0, mean_rho2 - square(rho)) / 2;
}

GradientError GradientRowErrors::widened(GradientError e) const {
  constexpr double kDeviations = 6, kLargestError = 2;  // weights e^2 times as large: beyond, their mean says nothing
  const double of_score =
      std::sqrt(common_.scores.second + common_.scores.value) * fact(GradientFact::statistic_product);
  if (std::min(kDeviations * of_score, common_.swing) > kLargestError) {
    e.variance = std::max(e.variance, square(e.bound / kAttentionKappa));
  }
  return e;
}

double GradientRowErrors::carried_error() const {
  const double own =
      common_.bound() * fact(GradientFact::products) + common_.arithmetic_unit() * fact(GradientFact::arithmetic);
  const double of_statistic = common_.bound() * fact(GradientFact::statistic_product) +
                              common_.arithmetic_unit() * fact(GradientFact::statistic_argument);
  return growth_ * (own + of_statistic * fact(GradientFact::weight));
}

double GradientRowErrors::of_statistic() const {
  return common_.statistic(fact(GradientFact::statistic_square), fact(GradientFact::statistic_second));
}

double GradientRowErrors::weights(const GradientElement& element) const {
  const double z = weights_ * element.weight_ratio;
  return z * mean_square(z);
}

}  // namespace numcheck::tolerance
