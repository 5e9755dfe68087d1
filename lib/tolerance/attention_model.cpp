#include "tolerance/attention_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "op/attention_fwd.hpp"
#include "op/attention_layout.hpp"
#include "tolerance/attention_max_model.hpp"
#include "tolerance/attention_products.hpp"
#include "tolerance/attention_rounding.hpp"
#include "tolerance/tracked.hpp"
#include "tolerance/tracked_model.hpp"

namespace numcheck::tolerance {
namespace {

using core::Dtype;

/// The facts of one query.
class Row {
 public:
  Row(const op::OutputValues& o, std::size_t index) : o_(o), index_(index) {}
  [[nodiscard]] double operator[](AttentionFact fact) const {
    return static_cast<double>(o_.row_facts[static_cast<std::size_t>(fact)][index_]);
  }

 private:
  const op::OutputValues& o_;
  std::size_t index_;
};

/// Error of a weight's numerator, relative. What all scores of a query have in common moves its log-sum-exp as well.
struct WeightError {
  double bound;
  double variance;
  double shared;
};

WeightError weight_error(const AttentionProducts& products, const SumError& scores, bool ordered, const Row& row) {
  constexpr double u = kUnit32;
  const double steps = products.scale_steps();
  const double argument = row[AttentionFact::argument];
  const double magnitude = row[AttentionFact::score_magnitude];
  const double square = row[AttentionFact::score_square];
  const double sum = row[AttentionFact::product_sum];
  const double one_sign = sum == 0 ? 0 : std::min(1.0, square / (sum * sum));
  // Bits of FP8 products that are truncated are those of the largest one, not of half the sum, if it is most of the sum.
  const double alone =
      products.scaled && sum > 0 ? std::clamp(4 * row[AttentionFact::score_second] / (sum * sum), 1.0, 4.0) : 1;
  const double partial = ordered ? std::max(square, sum * sum) : square;
  const double shared = scores.value * partial + scores.coherent * alone * one_sign * square;
  return {
      scores.bound * magnitude + u * ((5 + steps) * argument + 8),
      scores.second * row[AttentionFact::score_second] + shared + u * u * ((1 + steps / 3) * argument * argument + 3),
      shared};
}

/// The share of rounding errors of normal numbers that does not average out, if they spread over so many ulps.
double alike(double ulps, bool few_values) {
  return few_values ? 1 : std::exp(-4 * std::numbers::pi * std::numbers::pi * ulps * ulps);
}

/// Weights that differ by less than an ulp of their format, 2 u_P, are rounded alike, but for the largest one, unless it
/// is normalised before.
double rounded_alike(double unit, bool few_values, bool normalised, const Row& row) {
  if (unit == 0) {
    return 0;
  }
  const double largest = std::min(1.0, row[AttentionFact::largest_weight]);
  // Where all weights are subnormal, their rounding errors are larger.
  const double subnormal = largest == 0 ? 1 : std::max(1.0, row[AttentionFact::least_weight] / largest);
  return alike(row[AttentionFact::score_spread] / (2 * unit * subnormal), few_values) *
         (normalised ? subnormal : 1 - largest);
}

/// With dropout, that one is 1 / (1 - dropout), whose rounding error is the same in every query. Relative; 0 if weights
/// are normalised before.
double largest_alike(const AttentionProducts& products, bool normalised, const op::AttentionParams& p) {
  const double kept = p.keep_scale();
  return normalised || products.unit() == 0 ? 0 : std::fabs(core::round_to(kept, products.format) / kept - 1);
}

/// Scores are drawn from few numbers.
bool has_few_values(const model::ModelRequest& request) {
  return request.exact_leg || request.constant_inputs || request.first_pattern.few_values ||
         request.second_pattern.few_values || is_ordered(request);
}

double square(double x) {
  return x * x;
}

struct Element {
  double bound = 0;
  double variance = 0;
};

/// What declared roundings add to the errors of one query.
struct Stored {
  double bound = 0;     ///< of a weight's numerator, in root mean square
  double growth = 1;    ///< e
  double variance = 0;  ///< of a weight's numerator
  double scatter = 0;   ///< G
  double common = 0;    ///< part of the variance that lse has
  double alike = 0;     ///< a_s
  double sink = 0;      ///< u |sink|
  double equal = 0;     ///< k 0.18 u^2
  double lost = 0;      ///< of a weight that is subnormal in FP16
  double values = 0;    ///< V2
  double dropped = 0;   ///< u, if dropped weights are stored

  Stored(const model::ModelRequest& request, const op::AttentionParams& p, bool few_values, const Row& row);
};

Stored::Stored(const model::ModelRequest& request, const op::AttentionParams& p, bool few_values, const Row& row) {
  constexpr double kSteepest = 40;  // a bound that is e^80 times as large says nothing anyway
  const core::DtypeInfo& format = core::dtype_info(request.mode->first);
  const double u = format.unit_roundoff;
  const ScoreRounding scores(request.rounding, request.mode->first, p);
  const ScoreSquares squares{row[AttentionFact::score_square], row[AttentionFact::inner_square],
                             row[AttentionFact::scored_square]};
  const double size = std::sqrt(squares.score), spread = row[AttentionFact::score_spread];
  const double together = row[AttentionFact::squared_weights];
  bound = scores.bound(squares);
  growth = std::exp(2 * std::min(kSteepest, scores.bound(row[AttentionFact::largest_score])));
  variance = scores.variance(squares) * std::exp(std::min(kSteepest, scores.variance(squares)));
  scatter = few_values ? 1 : row[AttentionFact::scatter];
  alike = size == 0 || !request.rounding.scores ? 0 : tolerance::alike(spread / (2 * u * size), few_values);
  common = together + (1 - together) * alike;
  sink = request.rounding.sink ? u * row[AttentionFact::sink] : 0;
  if (request.rounding.weights && request.rounding.scores && size > 0) {
    const double same = u * size / (std::sqrt(std::numbers::pi) * spread);
    equal = kRoundVariance * u * u * (few_values || !(same < 1) ? 1 : same);
  }
  lost = request.rounding.weights && request.mode->first == Dtype::fp16 ? format.min_subnormal / 2 : 0;
  values = row[AttentionFact::value_square];
  if (request.rounding.dropped_weights) {
    dropped = u;
    equal *= 2;
    lost *= 2;
  }
}

constexpr double kUnderflow = 0x1p-112;  // FP32 numerators below 2^-126, in units of W's 2^-14
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestError = 0.25;  // beyond, errors of weights are not proportional to those of scores
constexpr double kLeast = 0x1p-148;     // twice the smallest FP32 number

/// One query: what its elements have in common.
class Query {
 public:
  Query(const AttentionProducts& products, const SumError& scores, bool few_values, bool ordered, const Stored& stored,
        const op::AttentionParams& p, bool normalised, const Row& row)
      : unit_(products.unit()),
        subnormal_unit_(products.format == Dtype::fp16 || products.scaled ? unit_ : 0),
        scale_steps_(products.scale_steps()),
        keys_(row[AttentionFact::keys]),
        largest_(row[AttentionFact::largest_weight]),
        equal_(row[AttentionFact::equal_weight]),
        values_(products.sum(static_cast<std::int64_t>(keys_))),
        weights_(weight_error(products, scores, ordered, row)),
        alike_(rounded_alike(unit_, few_values, normalised, row)),
        largest_alike_(largest_alike(products, normalised, p)),
        steps_(p.has_dropout() ? 18 : 16),
        largest_error_(p.has_dropout() ? kLargestError : kInfinity),
        least_(std::max(kLeast,
                        products.tf32_unit() == 0 ? 0 : core::dtype_info(Dtype::tf32).min_subnormal * p.keep_scale())),
        ordered_(ordered),
        stored_(stored) {}

  [[nodiscard]] Element output(double o, double rho, double squares) const {
    constexpr double u = kUnit32;
    if (weights_.bound > largest_error_) {
      return {kInfinity, kInfinity};
    }
    const double spread2 = std::max(0.0, rho * rho - o * o) + 0x1p-20 * rho * rho;  // rho is an FP32 number
    return {(unit_ + stored_.dropped + values_.bound + (keys_ + steps_ + scale_steps_) * u) * rho +
                weights_.bound * (1 + weights_.bound) * std::sqrt(spread2) +
                (subnormal_unit_ + kUnderflow) * std::sqrt(keys_ * squares) + least_ +
                stored_.growth * stored_.bound * std::sqrt(spread2) + stored_.sink * std::fabs(o) +
                stored_.lost * std::sqrt(keys_ * stored_.values),
            (kRoundVariance * (square(unit_) + square(stored_.dropped)) + values_.second +
             square(largest_alike_) * equal_) *
                    squares +
                weights_.variance * largest_ * spread2 +
                (u * u * (keys_ / 12 + 1 + scale_steps_ / 3) + square((unit_ + stored_.dropped) * alike_) / 3 +
                 square(largest_alike_ * equal_) + square(stored_.sink) / 3 + stored_.equal) *
                    o * o +
                values_.value * (ordered_ ? rho * rho : o * o) + stored_.variance * stored_.scatter * spread2 +
                square(stored_.lost) / 3 * stored_.values + square(least_) / 3 +
                (rho == 0 ? 0 : values_.coherent * square(o * o / rho))};
  }

  /// Of the largest weight: a single score is off by at most d / sqrt(max p), since d is a mean weighted with p.
  [[nodiscard]] Element largest(double lse) const {
    if (largest_ == 0) {
      return {};
    }
    const Element below = statistic(lse);
    return {largest_ * std::expm1(weights_.bound / std::sqrt(largest_) + below.bound),
            largest_ * largest_ * (weights_.variance / largest_ + below.variance)};
  }

  [[nodiscard]] Element statistic(double lse) const {
    constexpr double u = kUnit32;
    return {weights_.bound * (1 + weights_.bound) + (keys_ + 8) * u + 2 * u * std::fabs(lse) +
                stored_.growth * stored_.bound + stored_.sink,
            weights_.variance * largest_ + weights_.shared + u * u * (keys_ / 12 + 1 + lse * lse) +
                stored_.variance * stored_.common + square(stored_.sink) / 3};
  }

 private:
  double unit_, subnormal_unit_, scale_steps_, keys_, largest_, equal_;
  SumError values_;
  WeightError weights_;
  double alike_, largest_alike_;
  double steps_;          ///< roundings to FP32 besides those of sums
  double largest_error_;  ///< of a weight, from which on outputs could be anything
  double least_;          ///< what subnormal values lose
  bool ordered_;
  Stored stored_;
};

const op::OutputValues& output_named(const op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  if (found == values.outputs.end()) {
    throw core::InternalError("attention has no output " + std::string(port));
  }
  return *found;
}

/// A query that the reference has left out.
bool is_undetermined(const op::OutputValues& o, std::size_t row) {
  return std::isinf(Row(o, row)[AttentionFact::keys]);
}

/// The bound of an element as a finite number of its format.
float bounded(double x) {
  return static_cast<float>(std::min(x, static_cast<double>(std::numeric_limits<float>::max())));
}

}  // namespace

void attention_error(const model::ModelRequest& request, const op::Values& values, std::string_view port,
                     std::span<float> bound, std::span<float> variance) {
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const op::OutputValues& o = output_named(values, "o");
  const op::OutputValues& lse = output_named(values, "lse");
  const op::OutputValues& judged = output_named(values, port);
  const AttentionProducts products(request);
  const SumError scores = products.sum(p.d);
  const bool few_values = has_few_values(request);
  const auto query_at = [&](std::size_t query) -> std::optional<Query> {
    if (is_undetermined(o, query)) {
      return std::nullopt;
    }
    const Row facts(o, query);
    return Query(products, scores, few_values, is_ordered(request), Stored(request, p, few_values, facts), p,
                 request.rounding.weights || products.scaled, facts);
  };
  const auto store = [&](std::size_t at, const Element& element, bool undetermined) {
    bound[at] = undetermined ? std::numeric_limits<float>::max() : bounded(element.bound);
    variance[at] = undetermined ? std::numeric_limits<float>::infinity() : static_cast<float>(element.variance);
  };
  if (port == "s_amax") {
    Element largest;
    for (std::size_t query = 0; query < o.row_facts.front().size(); ++query) {
      if (const std::optional<Query> row = query_at(query)) {
        const Element element = row->largest(lse.value[op::statistic_element(p, query)]);
        largest = {std::max(largest.bound, element.bound), std::max(largest.variance, element.variance)};
      }
    }
    store(0, largest, std::isinf(judged.magnitude[0]) || std::isinf(judged.second_moment[0]));
    return;
  }
  const std::int64_t width = p.value_channels();
  for (const op::OutputValues::Range& unused : judged.outside) {
    for (std::int64_t at = unused.begin; at < unused.end; ++at) {
      store(static_cast<std::size_t>(at), {}, true);
    }
  }
  core::parallel_for(static_cast<std::size_t>(p.batches * p.heads), [&](std::size_t head) {
    const auto batch = static_cast<std::int64_t>(head) / p.heads;
    const op::HeadPlace place =
        op::head_place(p, op::Side::queries, batch, static_cast<std::int64_t>(head) % p.heads, width);
    const op::HeadPlace statistic = op::statistic_place(p, batch, static_cast<std::int64_t>(head) % p.heads);
    const std::int64_t queries = op::positions(p, op::Side::queries, batch);
    for (std::int64_t i = 0; i < queries; ++i) {
      const std::size_t query = head * static_cast<std::size_t>(p.sq) + static_cast<std::size_t>(i);
      const std::optional<Query> row = query_at(query);
      const bool undetermined = !row.has_value();
      if (port == "lse") {
        const auto at = static_cast<std::size_t>(statistic.first + i * statistic.stride);
        store(at, row ? row->statistic(judged.value[at]) : Element(), undetermined);
        continue;
      }
      for (std::int64_t c = 0; c < width; ++c) {
        const auto at = static_cast<std::size_t>(place.first + i * place.stride + c);
        store(at,
              row ? row->output(judged.value[at], static_cast<double>(judged.magnitude[at]),
                                static_cast<double>(judged.second_moment[at]))
                  : Element(),
              undetermined);
      }
    }
  });
}

double attention_shared_slope(const model::ModelRequest& request, const op::Values& values, std::string_view port) {
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const op::OutputValues& o = output_named(values, "o");
  const AttentionProducts products(request);
  const double unit = products.unit(), largest = largest_alike(products, request.rounding.weights, p);
  const SumError scores = products.sum(p.d);
  const bool few_values = has_few_values(request);
  const std::size_t queries = o.row_facts.front().size();
  double sum = 0, errors = 0, squares = 0;
  for (std::size_t query = 0; query < queries; ++query) {
    if (is_undetermined(o, query)) {
      continue;
    }
    const Row row(o, query);
    const Stored stored(request, p, few_values, row);
    const bool normalised = request.rounding.weights || products.scaled;
    const double slope = (unit + stored.dropped) * rounded_alike(unit, few_values, normalised, row) +
                         largest * row[AttentionFact::equal_weight] + stored.sink + stored.variance * stored.scatter;
    const double lse = port == "lse" ? output_named(values, port).value[op::statistic_element(p, query)] : 0;
    const double error = square(stored.sink + stored.variance + stored.bound * stored.alike) +
                         weight_error(products, scores, is_ordered(request), row).shared;
    if (!std::isfinite(slope) || !std::isfinite(lse) || !std::isfinite(error)) {
      continue;  // infinite scores
    }
    sum += slope;
    errors += error;
    squares += square(lse);
  }
  if (port == "lse") {
    return errors == 0 ? 0 : std::sqrt(errors / squares);
  }
  const double truncated = products.scaled && port == "o" ? truncation_slope(products, p.sk, o) : 0;
  return truncated + (queries == 0 ? 0 : sum / static_cast<double>(queries));
}

model::ErrorModel attention_error_model(const model::ModelRequest& request, std::string_view port) {
  if (port == "max_logit") {
    return max_logit_error_model(request);
  }
  if (port == "dropout_mask") {  // random: no error, findings judge it
    return tracked_error_model(request, port);
  }
  constexpr double kUndetermined = 1e38;
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const AttentionProducts products(request);
  const std::int64_t sharing = p.heads / p.key_heads();
  model::ErrorModel model;
  model.output = request.output;
  model.output_scale = request.output_scale;
  model.exact = request.exact_leg && port == "o";
  model.exact_because = "weights are 0 or equal, and sums of values exact, so any order gives these bits";
  model.bound_magnitude = 1;
  model.var_second = 1;
  model.kappa = kAttentionKappa;
  model.overflow_magnitude = kUndetermined;
  model.slope_slack = (static_cast<double>(p.sk) + 16) * kUnit32;
  model.reduction = static_cast<double>(p.sk);
  model.columns_agree = port == "o";
  model.rounding_copies = products.scaled && port == "o" ? static_cast<double>(p.sq * sharing) : 1;
  model.slope_copies = static_cast<double>(sharing);
  if (request.output_scale != 1) {
    model.bound_value = kUnit32;
    model.var_value = kUnit32 * kUnit32 / 3;
  }
  model.one_error = request.constant_inputs;
  model.lost_alike = true;
  model.source =
      fmt::format("attention_fwd/{} on {}, {}: d={}, keys={}", request.mode->name,
                  products.chain ? "FP32 fused multiply-adds" : products.arithmetic.description, port, p.d, p.sk);
  if (const std::string stored = describe(request.rounding, core::dtype_info(request.mode->first).name);
      !stored.empty()) {
    model.source += "; " + stored;
  }
  // The largest magnitude of o is judged by the errors of o.
  const std::string judged(port == "o_amax" ? "o" : port);
  model.shared_slope = [request, judged](const op::Values& values) {
    return attention_shared_slope(request, values, judged);
  };
  model.element_errors = [request, judged](const op::Values& values, std::span<float> bound,
                                           std::span<float> variance) {
    attention_error(request, values, judged, bound, variance);
    judge_by_bound(request, bound, variance);
  };
  return model;
}

}  // namespace numcheck::tolerance
