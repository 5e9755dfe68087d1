#include "tolerance/attention_query.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "core/codec.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {
namespace {

using core::Dtype;

constexpr double kLostNumerator = 0x1p-112;  // FP32 numerators below 2^-126, in units of W's 2^-14
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestError = 0.25;  // beyond, errors of weights are not proportional to those of scores
constexpr double kSteepestScore = 600;  // whose exponential is a finite number
constexpr double kLeast = 0x1p-148;     // twice the smallest FP32 number

// Of sums of squares of terms that round alike; facts of values are sums in FP32.
constexpr double kAlikeProducts = 1 + 0x1p-20, kAlikeValues = 1 + 0x1p-12;

double square(double x) {
  return x * x;
}

/// Of a sum of n equal numbers: half of all additions are in the last binade, (n / 2)^2 u^2 / 3 of the square of the sum.
double equal_terms(double n) {
  return square(n * kUnit32) / 12;
}

/// A score that became x; x itself where that is as good as the cap, or more because a bias was added.
double before_cap(double x, double cap) {
  return cap > 0 && x < cap ? cap * std::atanh(x / cap) : x;
}

/// The share of rounding errors of normal numbers that does not average out, if they spread over so many ulps.
double alike(double ulps, bool few_values) {
  return few_values ? 1 : std::exp(-4 * std::numbers::pi * std::numbers::pi * ulps * ulps);
}

/// The share of weights that are one of two numbers, as their scores are at the cap: no less than that of scores that are
/// normal before it. (Twice the cap, these have 0.64 of its square, and 18 % are within 0.8 % of it.)
double saturated(const QueryCommon& common, const QueryFacts& facts) {
  const double square = facts[AttentionFact::score_square];
  return common.cap > 0 ? std::clamp(2 * square / (common.cap * common.cap) - 1, 0.0, 1.0) : 0;
}

/// False if the largest weight is 1: it is not if weights are normalised before, or if a sink is larger, relative to which
/// kernels may weigh.
bool rounds_largest(const QueryCommon& common, const QueryFacts& facts) {
  return common.normalised || facts[AttentionFact::sink_share] > facts[AttentionFact::largest_weight];
}

/// Weights that differ by less than an ulp of their format, 2 u_P, are rounded alike, but for a largest one of 1. `spread`: of
/// their scores.
double rounded_alike(const QueryCommon& common, const QueryFacts& facts, AttentionFact spread) {
  if (common.unit == 0) {
    return 0;
  }
  const double largest = std::min(1.0, facts[AttentionFact::largest_weight]);
  // Where all weights are subnormal in FP16 or FP8, their rounding errors are larger.
  const bool narrow_range = common.products.format == Dtype::fp16 || common.products.scaled;
  const double subnormal =
      largest == 0 || !narrow_range ? 1 : std::max(1.0, facts[AttentionFact::least_weight] / largest);
  const bool few = common.few_values || common.heavy_tails;
  return std::max(saturated(common, facts), alike(facts[spread] / (2 * common.unit * subnormal), few)) *
         (rounds_largest(common, facts) ? subnormal : 1 - largest);
}

/// Of the weights of all keys, a sink left out: what an error of some of them is to an output.
double share_of_keys(double weight, double sink_share) {
  return sink_share < 1 ? std::min(1.0, weight / (1 - sink_share)) : 1;
}

/// With dropout, the largest weight is 1 / (1 - dropout), whose rounding error is the same in all rows. Relative; 0 if
/// weights are normalised before, and not stored again after dropout.
double rounding_of_largest(const AttentionProducts& products, bool normalised, const op::AttentionParams& p) {
  const double kept = p.keep_scale();
  return normalised || products.unit() == 0 ? 0 : std::fabs(core::round_to(kept, products.format) / kept - 1);
}

}  // namespace

QueryCommon::QueryCommon(const model::ModelRequest& request, const op::AttentionParams& p)
    : products(request),
      d(static_cast<double>(p.d)),
      scores(products.sum(p.d)),
      stored_scores(request.rounding, request.mode->first, p, has_few_values(request)),
      rounding(request.rounding),
      format(request.mode->first),
      unit(products.unit()),
      operand(square(products.tf32_unit())),
      largest_alike(
          rounding_of_largest(products, (rounding.weights && !rounding.dropped_weights) || products.scaled, p)),
      cap(std::fabs(p.softcap)),
      steps(p.has_dropout() ? 18 : 16),
      contest(products.tf32_unit() == 0 ? AttentionFact::contest : AttentionFact::tf32_contest),
      largest_error(p.has_dropout() ? kLargestError : kInfinity),
      least(std::max(kLeast,
                     products.tf32_unit() == 0 ? 0 : core::dtype_info(Dtype::tf32).min_subnormal * p.keep_scale())),
      few_values(has_few_values(request)),
      heavy_tails((rounding.weights || rounding.dropped_weights) && has_heavy_tails(request)),
      ordered(is_ordered(request)),
      normalised(rounding.weights || products.scaled) {}

QueryErrors::WeightError::WeightError(const QueryCommon& common, const QueryFacts& facts) {
  constexpr double u = kUnit32;
  const SumError& scores = common.scores;
  const double steps = common.products.scale_steps();
  const double argument = facts[AttentionFact::argument];
  const double magnitude = facts[AttentionFact::score_magnitude];
  const double square = facts[AttentionFact::score_square];
  const double sum = facts[AttentionFact::product_sum];
  const double partial = common.ordered ? std::max(square, sum * sum) : square;
  const double random = scores.value * partial;
  if (common.products.scaled) {
    shared = truncated(common, facts) + (common.few_values ? random : 0);
    variance = common.few_values ? 0 : random;
  } else {
    const double one_sign = sum == 0 ? 0 : std::min(1.0, square / (sum * sum));
    shared = random + scores.coherent * one_sign * square;
    variance = 0;
  }
  shared += alike(common, facts);
  bound = scores.bound * magnitude + u * ((5 + steps) * argument + 8);
  variance +=
      scores.second * facts[AttentionFact::score_second] + shared + u * u * ((1 + steps / 3) * argument * argument + 3);
}

double QueryErrors::WeightError::alike(const QueryCommon& common, const QueryFacts& facts) {
  const double square = facts[AttentionFact::score_square], sum = before_cap(std::sqrt(square), common.cap);
  const bool equal = common.d * facts[AttentionFact::score_second] <= (sum * sum + square) * kAlikeProducts;
  return kRoundVariance * common.operand * facts[AttentionFact::score_common] +
         square * ((equal ? equal_terms(common.d) : 0) + (equal || common.ordered ? 4 * common.operand / 3 : 0));
}

double QueryErrors::WeightError::truncated(const QueryCommon& common, const QueryFacts& facts) {
  constexpr int kFractionBits = 6;  // of a product of two E4M3 numbers
  const double square = facts[AttentionFact::score_square], second = facts[AttentionFact::score_second];
  const double sum = facts[AttentionFact::product_sum], d = common.d;
  const double largest = std::sqrt(std::max(square + second, common.ordered ? sum * sum : 0));
  const double others =
      std::ldexp(std::max(0.0, sum - std::sqrt(second)), common.products.arithmetic.F - kFractionBits - 1);
  const double share = largest == 0 ? 0 : d * largest / (d * largest + others);
  const double net = share * largest * facts[AttentionFact::net_signs];
  // c is the square of what d products lose at half their sum on average: d h / 2.
  return 4 * common.scores.coherent / (d * d) * (net * net + square);
}

QueryErrors::Stored::Stored(const QueryCommon& all, const QueryFacts& facts) {
  constexpr double kSteepest = 40;  // a bound that is e^80 times as large says nothing anyway
  const core::DtypeInfo& format = core::dtype_info(all.format);
  const model::AttentionRounding& rounding = all.rounding;
  const ScoreRounding& scores = all.stored_scores;
  const bool few_values = all.few_values;
  const double u = format.unit_roundoff;
  const ScoreSquares squares{facts[AttentionFact::score_square], facts[AttentionFact::inner_square],
                             facts[AttentionFact::scored_square]};
  const double size = std::sqrt(squares.score), spread = facts[AttentionFact::score_spread];
  together = facts[AttentionFact::squared_weights];
  bound = scores.bound(squares);
  growth = std::exp(2 * std::min(kSteepest, scores.bound(facts[AttentionFact::largest_score])));
  variance = scores.variance(squares) * std::exp(std::min(kSteepest, scores.variance(squares)));
  scatter = few_values ? 1 : facts[AttentionFact::scatter];
  alike = size == 0 || !rounding.scores ? 0 : tolerance::alike(spread / (2 * u * size), few_values);
  coherent = (1 - together) * alike / kRoundVariance;  // alike in all queries, they are not spread over an ulp
  if (rounding.scores && all.cap > 0) {
    // tanh x = x - x^3 / 3 of a stored x is rounded nearly alike for all x that are less than 1 / x^2 ulps apart.
    const double inner = std::sqrt(squares.inner), x2 = square(inner / all.cap);
    shift = inner * std::min(u, x2 / 3) * (1 - together) *
            (inner == 0 ? 0 : tolerance::alike(x2 * spread / (2 * u * inner), few_values));
  }
  unknown = scores.may_exchange_keys(facts[AttentionFact::largest_score]);
  sink = rounding.sink ? u * facts[AttentionFact::sink] : 0;
  if (rounding.weights && rounding.scores && size > 0) {
    const double same = u * size / (std::sqrt(std::numbers::pi) * spread);
    equal = kRoundVariance * u * u * (few_values || !(same < 1) ? 1 : same);
  }
  lost = rounding.weights && all.format == Dtype::fp16 ? format.min_subnormal / 2 : 0;
  values = square(facts[AttentionFact::value_size]);
  if (rounding.dropped_weights) {
    dropped = u;
    equal *= 2;
    lost *= 2;
  }
}

QueryErrors::QueryErrors(const QueryCommon& common, const QueryFacts& facts)
    : common_(common),
      keys_(facts[AttentionFact::keys]),
      largest_(facts[AttentionFact::largest_weight]),
      equal_(share_of_keys(facts[AttentionFact::equal_weight], facts[AttentionFact::sink_share])),
      argument_(facts[AttentionFact::argument]),
      values_(common.products.sum(static_cast<std::int64_t>(keys_))),
      contest_(facts[common.contest]),
      rounds_largest_(rounds_largest(common, facts)),
      sink_share_(facts[AttentionFact::sink_share]),
      all_values_(facts[AttentionFact::value_size]),
      value_range_(facts[AttentionFact::value_range]),
      weights_(common, facts),
      alike_(rounded_alike(common, facts, AttentionFact::score_spread)),
      saturated_(common.products.scaled ? -std::expm1(-2 * kUnit32 * facts[AttentionFact::largest_score]) : 0),
      alike_everywhere_(std::max(alike_, rounded_alike(common, facts, AttentionFact::query_spread))),
      stored_(common, facts) {}

QueryError QueryErrors::output(double o, double rho, double squares) const {
  constexpr double u = kUnit32;
  const bool settled = contest_ < 0 && !common_.rounding.scores;  // scores that are stored have errors of their own
  if (!settled && weights_.bound > common_.largest_error) {
    return {kInfinity, kInfinity};
  }
  const double unit = common_.unit, largest_alike = common_.largest_alike;
  const double scale_steps = common_.products.scale_steps();
  const double subnormal_unit = common_.products.format == Dtype::fp16 || common_.products.scaled ? unit : 0;
  const double spread2 = std::max(0.0, rho * rho - o * o) + 0x1p-20 * rho * rho;  // rho is an FP32 number
  const double other_keys = settled ? 2 * keys_ * std::exp(-kSettledMargin) * (std::fabs(o) + all_values_) : kInfinity;
  const double relative =
      unit + stored_.dropped + saturated_ + values_.bound + (keys_ + common_.steps + scale_steps) * u;
  QueryError e{
      relative * rho + std::min(other_keys, weights_.bound * (1 + weights_.bound) * std::sqrt(spread2)) +
          (subnormal_unit + kLostNumerator) * std::sqrt(keys_ * squares) + common_.least + keys_ / 2 * kUnderflow +
          stored_.growth * stored_.bound * std::sqrt(spread2) + stored_.sink * std::fabs(o) +
          stored_.lost * std::sqrt(keys_ * stored_.values),
      (kRoundVariance * (square(unit) + square(stored_.dropped)) + values_.second + square(largest_alike) * equal_) *
              squares +
          std::min(square(other_keys), weights_.variance * largest_ * spread2) +
          (u * u * (keys_ / 12 + 1 + scale_steps / 3) + square((unit + stored_.dropped) * alike_) / 3 +
           square(largest_alike * equal_) + (square(stored_.sink) + square(saturated_)) / 3 + stored_.equal +
           square(sink_share_) * (weights_.shared + stored_.variance * stored_.coherent + square(stored_.shift))) *
              o * o +
          alike_values(o, rho, squares) * o * o + values_.value * (common_.ordered ? rho * rho : o * o) +
          stored_.variance * stored_.scatter * spread2 + square(stored_.lost) / 3 * stored_.values +
          square(common_.least) / 3 + keys_ / 12 * square(kUnderflow) +
          (rho == 0 ? 0 : values_.coherent * square(o * o / rho))};
  if (!std::isfinite(e.bound)) {
    return e;
  }
  // Whatever the weights, o is a mean of values.
  const double most = value_range_ + (relative + unit + kLostNumerator * keys_) * all_values_ + common_.least +
                      keys_ / 2 * kUnderflow + stored_.lost * std::sqrt(keys_ * stored_.values);
  e.bound = std::min(e.bound, most);
  // Scores so large that their errors change weights by e^2: two keys may be alike for a kernel, and what the exact
  // weights say of the mean error means nothing.
  constexpr double kDeviations = 6, kLargestScoreError = 2;
  if (!settled && kDeviations * std::sqrt(weights_.variance) > kLargestScoreError) {
    e.variance = std::max(e.variance, square(e.bound / kAttentionKappa));
  }
  if (contest_ > 0 || stored_.unknown) {  // o may be what another key alone would give
    e.bound = most;
    e.variance = std::max(e.variance, square(most / kAttentionKappa));
  }
  return {e.bound, std::min(e.variance, square(most))};
}

double QueryErrors::alike_values(double o, double rho, double squares) const {
  const bool one_value = (1 - sink_share_) * rho * rho <= o * o * kAlikeValues;
  const bool equal = keys_ * squares <= o * o * kAlikeValues || (common_.few_values && one_value);
  return (equal ? equal_terms(keys_) : 0) + (equal || common_.ordered ? common_.operand / 3 : 0);
}

QueryError QueryErrors::statistic(double lse) const {
  constexpr double u = kUnit32;
  return {weights_.bound * (1 + weights_.bound) + (keys_ + 8) * u + 2 * u * std::fabs(lse) +
              stored_.growth * stored_.bound + stored_.sink + std::max(0.0, contest_),
          square(std::max(0.0, contest_) / kAttentionKappa) + weights_.variance * largest_ + weights_.shared +
              u * u * (keys_ / 12 + 1 + lse * lse) + stored_.variance * (stored_.together + stored_.coherent) +
              square(stored_.shift) + square(stored_.sink) / 3};
}

QueryError QueryErrors::largest(double lse) const {
  if (largest_ == 0) {
    return {};
  }
  constexpr double u = kUnit32;
  // A single score is off by at most d / sqrt(max p), since d is a mean weighted with p.
  const double single = weights_.bound / std::sqrt(largest_);
  const QueryError below = statistic(lse);
  const QueryError apart{largest_ * std::expm1(single + below.bound),
                         largest_ * largest_ * (weights_.variance / largest_ + below.variance)};
  if (contest_ > 0) {
    return apart;
  }
  // The same errors are in the log-sum-exp: of a weight near 1 they are worth what the other keys have.
  const double others = std::max(0.0, 1 - largest_) + u;  // the fact is an FP32 number
  const double moved = weights_.bound * (1 + weights_.bound) * std::sqrt(others);
  const double most = largest_ / (largest_ + std::max(0.0, others - moved) * std::exp(-single));
  const double least = largest_ / (largest_ + (others + moved) * std::exp(std::min(single, kSteepestScore)));
  const double steps = common_.products.scale_steps();
  const double rounded = u * ((5 + steps) * argument_ + keys_ + 16 + 2 * std::fabs(lse));
  constexpr double kSecondOrder = 4;
  return {std::min(apart.bound, std::max(most - largest_, largest_ - least) + largest_ * std::expm1(rounded)),
          std::min(apart.variance,
                   largest_ * others * weights_.variance *
                           std::exp(std::min(kSteepestScore, kSecondOrder * weights_.variance)) +
                       square(largest_ * u) * ((1 + steps / 3) * square(argument_) + keys_ / 12 + 4 + square(lse)))};
}

double QueryErrors::shared_slope(const QuerySizes& sizes) const {
  // No value is more than `keys` times as large as their mean. If the values cancel, what all keys but the largest's have is
  // o - p v of that one, and p |v| <= sqrt(p) rho.
  const double cancelled = 1 + std::sqrt(largest_ * sizes.over_outputs);
  const double others = rounds_largest_ ? 1 : std::max(std::min(1 / (1 - std::min(1.0, largest_)), keys_), cancelled);
  const double largest = std::max(equal_, std::min(1.0, equal_ * largest_ * sizes.over_seconds));
  // A cap that is lost on small scores leaves larger ones larger, and keys with more weight with still more.
  constexpr double kUncapped = 4;
  return (common_.unit + stored_.dropped) * alike_everywhere_ * others + common_.largest_alike * largest +
         stored_.sink + saturated_ + stored_.variance * stored_.scatter + kUncapped * stored_.shift +
         sink_share_ * (stored_.bound * stored_.alike + stored_.shift + std::sqrt(weights_.shared));
}

double QueryErrors::shared_square() const {
  return square(stored_.sink + stored_.variance + stored_.bound * stored_.alike + stored_.shift) + weights_.shared;
}

}  // namespace numcheck::tolerance
