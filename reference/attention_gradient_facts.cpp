#include "reference/attention_gradient_facts.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/dtype.hpp"
#include "core/isa.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

using tolerance::GradientFact;

/// Of tanh's error, 2 ulp at most, in units of (u tanh)^2: as in tolerance::function_of.
constexpr double kTanhVariance = 16.0 / 3;

double square(double x) {
  return x * x;
}

double ratio(double sum, double of) {
  return sum == 0 ? 0 : sum / of;
}

/// How much numbers whose weights, first and second moments these are differ, relative to their root mean square.
double relative_spread(double weights, double first, double second) {
  return second <= 0 ? 1 : std::sqrt(std::max(0.0, 1 - square(first) / (weights * second)));
}

/// 1 if such numbers differ by less than 2^-8 of their mean, and hence, as inputs are numbers of a few bits, mostly not at
/// all; 0 if they differ by more.
double alike(double weights, double first, double second) {
  return relative_spread(weights, first, second) < 0x1p-8 ? 1 : 0;
}

RoundingConstants rounding_to(core::Dtype dtype) {
  const core::DtypeInfo& info = core::dtype_info(dtype);
  return {std::ldexp(1.0, 52 - info.fraction_bits) + 1, 0x1.8p52 * info.min_subnormal, std::ldexp(1.0, info.emin)};
}

}  // namespace

const GradientFactKernels& gradient_fact_kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(gradient_fact_kernels)();
}

GradientFacts::GradientFacts(Of what, const AttentionGradients& gradients, std::size_t rows,
                             const StatisticFacts& statistics)
    : what_(what),
      gradients_(gradients),
      statistics_(statistics),
      rounded_(what == Of::values ? gradients.rounded_weights() : gradients.rounded_gradients()),
      format_(rounding_to(rounded_.format)),
      rows_(rows),
      sums_(kPairTerms * rows),
      equal_weights_(what == Of::values ? rows : 0) {}

QueryTerms GradientFacts::query_of(const GradientHead& head, std::int64_t i) const {
  const op::AttentionParams& p = gradients_.params();
  const GradientLengths& all = *head.errors;
  const auto at = static_cast<std::size_t>(i);
  const auto width = static_cast<double>(p.value_channels());
  const auto first = static_cast<std::size_t>((head.batch * p.heads + head.index) * p.sq);
  const double sink = gradients_.problem().sink(head.index), lse = head.lse[at], dot = head.dot[at];
  const bool known = std::isfinite(lse);
  const auto of_query = [&](std::span<const float> facts) {
    return facts.empty() ? 0 : static_cast<double>(facts[first + at]);
  };
  const double factor = std::fabs(gradients_.problem().factor());
  const double cap = p.softcap == 0 ? 0 : 1 / p.softcap;
  // What an error of a score does to the slope of a cap is in no weight, of which dv is made, nor in lse.
  const double steep = what_ == Of::values ? 0 : cap;
  return {.factor = factor,
          .most = tolerance::kMayOverflow * std::min(1.0, factor) * (1 + 2 * steep),
          .norm = all.queries.norms[at],
          .cap = cap,
          .steep = steep,
          .lse = known ? lse : 0,
          .sink = std::isfinite(sink) && known ? std::fabs(sink) * std::exp(sink - lse) : 0,
          .statistic = of_query(statistics_.square),
          .statistic_second = of_query(statistics_.second),
          .statistic_product = of_query(statistics_.product) * (1 + 2 * steep) / (1 + 2 * cap),
          .statistic_argument = of_query(statistics_.argument),
          .score_second = square(gradients_.problem().factor()) * all.score_second[at],
          .along = all.along[at],
          .gradient = all.gradient.norms[at],
          .gradient_second = all.gradient_second[at],
          .dot = std::isfinite(dot) ? dot : 0,
          .dot_variance = all.dot_variance[at],
          .dot_magnitude = all.dot_magnitude[at] + 2 * width * (tolerance::kFlush / tolerance::kUnit32),
          .width = width,
          .steps = width + (p.has_dropout() ? 8 : 4),
          .round_variance = tolerance::kRoundVariance,
          .tanh_variance = p.softcap == 0 ? 0 : kTanhVariance};
}

void GradientFacts::add(const GradientHead& head, const PairRow& pairs, std::size_t row) {
  last_ = pairs.weights.size();
  find_terms(head, pairs);
  const GradientFactKernels& kernels = gradient_fact_kernels();
  if (has_pairs_of_a_query()) {
    kernels.add_to_row(terms_, last_, sums_.data() + row * kPairTerms);
  } else {
    kernels.add_to_rows(terms_, last_, sums_.data() + row, rows_);
  }
  summed_deviation_ = std::max(summed_deviation_, head.errors->gradient_deviation);
  for (std::size_t n = 0; n < last_ && what_ == Of::values; ++n) {
    equal_weights_[row + n].add(pairs.weights[n] * (pairs.kept.empty() ? 1 : pairs.kept[n]));
  }
}

static_assert(kTile <= static_cast<std::int64_t>(kPairs), "a row of a tile has a place for each pair");

void GradientFacts::find_terms(const GradientHead& head, const PairRow& pairs) {
  const GradientFactKernels& kernels = gradient_fact_kernels();
  const QueryTerms query = query_of(head, pairs.query);
  std::span<const double> value_norms = pairs.value_norms, gradient_seconds = pairs.gradient_seconds;
  if (!pairs.kept.empty()) {
    value_norms_.assign(value_norms.begin(), value_norms.end());
    std::ranges::transform(value_norms_, pairs.kept, value_norms_.begin(), std::multiplies<>());
    value_norms = value_norms_;
    gradient_seconds_.assign(gradient_seconds.begin(), gradient_seconds.end());
    std::ranges::transform(gradient_seconds_, pairs.kept, gradient_seconds_.begin(),
                           [](double second, double kept) { return second * square(kept); });
    gradient_seconds = gradient_seconds_;
  }
  const PairLanes lanes{.count = last_,
                        .products = pairs.products.data(),
                        .scores = pairs.scores.data(),
                        .inner = pairs.inner.data(),
                        .weights = pairs.weights.data(),
                        .gradients = pairs.gradients.data(),
                        .slopes = pairs.slopes.data(),
                        .key_norms = pairs.key_norms.data(),
                        .value_norms = value_norms.data(),
                        .kept = pairs.kept.empty() ? nullptr : pairs.kept.data(),
                        .score_seconds = pairs.score_seconds.empty() ? nullptr : pairs.score_seconds.data(),
                        .gradient_seconds = gradient_seconds.empty() ? nullptr : gradient_seconds.data()};
  kernels.arguments(query, lanes, terms_);
  if (what_ == Of::values) {
    kernels.value_terms(query, lanes, terms_);
  } else {
    kernels.gradient_terms(query, lanes,
                           {.capped = query.cap != 0 && what_ != Of::capped_bias,
                            .sums_queries = what_ == Of::keys,
                            .shares_weight = what_ == Of::queries || what_ == Of::keys,
                            .has_dot_variance = what_ != Of::queries,
                            .has_tanh_variance = what_ != Of::bias},
                           terms_);
    note_dropped(query, pairs);
  }
  kernels.score_terms(query, lanes, what_ == Of::queries, terms_);
  if (what_ != Of::bias && what_ != Of::capped_bias) {
    if (gradients_.uneven()) {
      plain_.assign(&terms_[0][0], &terms_[0][0] + kPairTerms * kPairStride);
    }
    kernels.lengthen(last_, what_ != Of::queries, terms_);
  }
  // Kept weights may be divided by 1 - dropout before or after they are rounded.
  const double before = 1 / gradients_.problem().dropout().scale();
  kernels.shifts(format_, rounded_.scale * (what_ == Of::values ? before : query.factor), lanes, terms_);
}

/// A kernel that multiplies dp by a mask of 0 makes NaN of one that overflows.
void GradientFacts::note_dropped(const QueryTerms& query, const PairRow& pairs) {
  for (std::size_t n = 0; n < pairs.kept.size(); ++n) {
    if (pairs.kept[n] == 0) {
      terms_[kLargestChange][n] = query.gradient * pairs.value_norms[n] + query.dot_magnitude;
    }
  }
}

std::span<const double> GradientFacts::plain(PairTerm term) const {
  return std::span<const double>(plain_.empty() ? &terms_[0][0] : plain_.data(), kPairTerms * kPairStride)
      .subspan(term * kPairStride, last_);
}

double GradientFacts::change(std::size_t row) const {
  return sum(kReach, row) == 0 ? 0 : sum(kChange, row) / sum(kReach, row);  // slopes of 0 leave no sum to be wrong
}

double GradientFacts::shift(std::size_t row) const {
  const double before = sum(kShift, row), after = sum(kScaledShift, row);
  if (rounded_.scaled) {
    return after;
  }
  const bool once = what_ == Of::values && gradients_.problem().dropout().is_none();  // both are the same
  return once ? before : std::max(std::fabs(before), std::fabs(after));
}

double GradientFacts::equal_weights(std::size_t row) const {
  const bool same = !equal_weights_.empty() && round_alike(sum(kTerms, row), square(summed_deviation_), 1);
  return same ? std::sqrt(equal_weights_[row].excess()) : 0;
}

double GradientFacts::common_shift(std::size_t row) const {
  const double after = std::fabs(sum(kScaledSignedShift, row));
  return rounded_.scaled ? after : std::max(std::fabs(sum(kSignedShift, row)), after);
}

std::span<const double> GradientFacts::spread() const {
  return std::span<const double>(terms_[kSpread]).first(last_);
}

std::span<const double> GradientFacts::saturation() const {
  return std::span<const double>(terms_[kSaturation]).first(last_);
}

std::span<const double> GradientFacts::scored() {
  scored_.resize(last_);
  for (std::size_t n = 0; n < last_; ++n) {
    scored_[n] = std::max(0.0, std::max(terms_[kInnerSquare][n], terms_[kScoredSquare][n]) + terms_[kStatistic][n]);
  }
  return scored_;
}

void GradientFacts::store(std::size_t row, std::span<core::Buffer<float>> facts, std::size_t at) const {
  const auto sum = [&](PairTerm term) { return this->sum(term, row); };
  const auto set = [&](GradientFact fact, double x) {
    facts[static_cast<std::size_t>(fact)][at] = tolerance::kept(fact, x);
  };
  const bool bias = what_ == Of::bias || what_ == Of::capped_bias;
  set(GradientFact::terms, bias ? static_cast<double>(gradients_.params().batches) : sum(kTerms));
  set(GradientFact::weight, std::sqrt(sum(kWeight)));
  set(GradientFact::products, std::sqrt(sum(kProducts)));
  set(GradientFact::arithmetic, std::sqrt(sum(kArithmetic)));
  set(GradientFact::largest_product, sum(kLargestProduct));
  set(GradientFact::largest_argument, sum(kLargestArgument));
  set(GradientFact::largest_gradient, sum(kLargestGradient));
  set(GradientFact::alike_scores, alike(sum(kPlain), sum(kPlainScore), sum(kPlainScoreSquare)));
  set(GradientFact::alike_gradients, alike(sum(kPlain), sum(kPlainGradient), sum(kPlainGradientSquare)));
  set(GradientFact::score_spread, relative_spread(sum(kPlain), sum(kPlainScore), sum(kPlainScoreSquare)));
  set(GradientFact::gradient_spread, relative_spread(sum(kPlain), sum(kPlainGradient), sum(kPlainGradientSquare)));
  set(GradientFact::equal_pairs, sum(kReachSquare) == 0 ? 0 : sum(kShare) / sum(kReachSquare));
  set(GradientFact::equal_weights, equal_weights(row));
  set(GradientFact::largest_change, sum(kLargestChange));
  set(GradientFact::largest_term, sum(kLargestTerm));
  set(GradientFact::length, std::sqrt(sum(kLength)));
  set(GradientFact::shift, ratio(shift(row), sum(kMagnitude)));
  set(GradientFact::common_shift, ratio(common_shift(row), sum(kPlain)));
  set(GradientFact::spacing, rounded_.scaled ? core::dtype_info(rounded_.format).min_subnormal / rounded_.scale : 0);
  set(GradientFact::score_mean, ratio(sum(kScore), sum(kPlain)));
  set(GradientFact::score_second, ratio(sum(kScoreSecond), sum(kSquare)));
  set(GradientFact::score_square, ratio(sum(kScoreSquare), sum(kSquare)));
  set(GradientFact::argument_square, ratio(sum(kArgumentSquare), sum(kSquare)));
  // Z is at least d_v (p slope)^2 sum (do v)^2 then, in which other terms of the row must not count.
  const bool apart = bias && gradients_.uneven() && sum(kShare) > 0;
  set(GradientFact::gradient_second,
      apart ? 1 / static_cast<double>(gradients_.params().value_channels()) : ratio(sum(kGradientSecond), sum(kShare)));
  set(GradientFact::gradient_square, ratio(sum(kGradientSquare), sum(kShare)));
  set(GradientFact::dot_variance, ratio(sum(kDotVariance), sum(kShare)));
  set(GradientFact::inner_square, ratio(sum(kInnerSquare), sum(kOwnSquare)));
  set(GradientFact::scored_square, ratio(sum(kScoredSquare), sum(kOwnSquare)));
  set(GradientFact::largest_score, sum(kLargestScore));
  set(GradientFact::largest_sink, sum(kLargestSink));
  set(GradientFact::free_share, what_ == Of::queries ? std::max(0.0, 1 - sum(kPlain)) : 0);
  const double of_statistic = what_ == Of::queries ? 1 : sum(kOwnSquare);
  set(GradientFact::statistic_square, ratio(sum(kStatistic), of_statistic));
  set(GradientFact::statistic_second, ratio(sum(kStatisticSecond), of_statistic));
  set(GradientFact::statistic_product, sum(kLargestStatisticProduct));
  set(GradientFact::statistic_argument, sum(kLargestStatisticArgument));
  set(GradientFact::saturation, ratio(sum(kSaturation), sum(kShare)));
}

void GradientFacts::store_own(const Own& own, std::span<core::Buffer<float>> facts, std::size_t at) {
  const auto set = [&](GradientFact fact, double x) {
    facts[static_cast<std::size_t>(fact)][at] = tolerance::kept(fact, x);
  };
  set(GradientFact::score_common, own.score_common);
  set(GradientFact::own_dot, own.dot);
  set(GradientFact::own_second, own.dot_second);
  set(GradientFact::own_dot_variance, own.dot_variance);
  set(GradientFact::own_statistic, own.statistic);
  set(GradientFact::equal_values, own.equal_values ? 1 : 0);
}

}  // namespace numcheck::reference
