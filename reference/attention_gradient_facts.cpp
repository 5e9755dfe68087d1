#include "reference/attention_gradient_facts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

using tolerance::GradientFact;
using tolerance::kRoundVariance;

/// Of tanh's error, 2 ulp at most, in units of (u tanh)^2: as in tolerance::function_of.
constexpr double kTanhVariance = 16.0 / 3;

double square(double x) {
  return x * x;
}

double ratio(double sum, double of) {
  return sum == 0 ? 0 : sum / of;
}

/// Sum in eight lanes, which the compiler may vectorise.
double sum_of(const double* x, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::size_t n = 0;
  for (; n + kLanes <= count; n += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      lanes[l] += x[n + l];
    }
  }
  double sum = 0;
  for (; n < count; ++n) {
    sum += x[n];
  }
  for (const double lane : lanes) {
    sum += lane;
  }
  return sum;
}

/// Rounds positive numbers to a format, to nearest even: core::round_to in a form that compilers vectorise. No overflow.
class Rounder {
 public:
  explicit Rounder(core::Dtype dtype)
      : split_(std::ldexp(1.0, 52 - core::dtype_info(dtype).fraction_bits) + 1),
        shift_(0x1.8p52 * core::dtype_info(dtype).min_subnormal),
        normal_(std::ldexp(1.0, core::dtype_info(dtype).emin)) {}
  [[nodiscard]] double operator()(double x) const {
    const double high = x * split_;
    const double split = high - (high - x), shifted = (x + shift_) - shift_;
    return x < normal_ ? shifted : split;
  }

 private:
  double split_;   ///< Veltkamp's constant: what remains of x has as many bits as the format
  double shift_;   ///< adding it leaves multiples of the spacing of subnormals
  double normal_;  ///< the smallest
};

}  // namespace

/// What the pairs of one query have in common.
struct GradientFacts::Query {
  double factor;  ///< |scale|
  double norm;    ///< |q|
  double cap;     ///< 1 / softcap, or 0
  double lse;
  double sink;  ///< |sink| exp(sink - lse)
  double statistic;
  double score_second, along;
  double gradient;  ///< |do|
  double gradient_second;
  double dot2;  ///< D^2
  double dot_variance;
  double dot_magnitude;  ///< m, with what underflow in products of do takes, in units of u
  double steps;          ///< d_v + 4
};

GradientFacts::GradientFacts(Of what, const AttentionGradients& gradients, std::size_t rows,
                             std::span<const float> statistics)
    : what_(what), gradients_(gradients), statistics_(statistics) {
  for (std::vector<double>& sums : sums_) {
    sums.resize(rows);
  }
}

GradientFacts::Query GradientFacts::query_of(const GradientHead& head, std::int64_t i) const {
  const op::AttentionParams& p = gradients_.params();
  const GradientLengths& all = *head.errors;
  const auto at = static_cast<std::size_t>(i);
  const auto width = static_cast<double>(p.value_channels());
  const auto first = static_cast<std::size_t>((head.batch * p.heads + head.index) * p.sq);
  const double sink = gradients_.problem().sink(head.index);
  return {.factor = std::fabs(gradients_.problem().factor()),
          .norm = all.queries.norms[at],
          .cap = p.softcap == 0 ? 0 : 1 / p.softcap,
          .lse = head.lse[i],
          .sink = std::isfinite(sink) ? std::fabs(sink) * std::exp(sink - head.lse[i]) : 0,
          .statistic = statistics_.empty() ? 0 : static_cast<double>(statistics_[first + at]),
          .score_second = square(gradients_.problem().factor()) * all.score_second[at],
          .along = all.along[at],
          .gradient = all.gradient.norms[at],
          .gradient_second = all.gradient_second[at],
          .dot2 = square(head.dot[at]),
          .dot_variance = all.dot_variance[at],
          .dot_magnitude = all.dot_magnitude[at] + 2 * width * (tolerance::kFlush / tolerance::kUnit32),
          .steps = width + 4};
}

void GradientFacts::add(const GradientHead& head, const PairRow& pairs, std::size_t row) {
  last_ = pairs.weights.size();
  const Query query = query_of(head, pairs.query);
  find_arguments(query, head, pairs);
  if (what_ == Of::values) {
    find_value_terms(query, pairs);
  } else {
    find_gradient_terms(query, head, pairs);
  }
  find_scores(query, pairs);
  find_shifts(pairs);
  what_ == Of::keys || what_ == Of::values ? add_to_rows(row, last_) : add_to_row(row, last_);
}

/// Errors of scores: what p and w have in common.
void GradientFacts::find_arguments(const Query& query, const GradientHead& head, const PairRow& pairs) {
  const double* key_norms = head.errors->keys.norms.data() + pairs.keys.begin;
  const double a = query.factor * (1 + 2 * query.cap) * query.norm;
  const double tanh_variance = query.cap == 0 ? 0 : kTanhVariance;
  for (std::size_t n = 0; n < last_; ++n) {
    const double t = pairs.products[n], s = pairs.scores[n];
    terms_[kTerms][n] = 1;
    terms_[kPlain][n] = pairs.weights[n];
    terms_[kLargestProduct][n] = a * key_norms[n];
    terms_[kLargestArgument][n] =
        5 * (std::fabs(t) + std::fabs(s) + std::fabs(query.lse) + std::fabs(s - query.lse)) + 8;
    terms_[kScoreSecond][n] = query.score_second * square(key_norms[n]) + query.along * t * t;
    terms_[kScoreSquare][n] = t * t;
    terms_[kArgumentSquare][n] =
        kRoundVariance * (2 * t * t + s * s + 2 * square(query.lse) + square(s - query.lse)) + tanh_variance * s * s;
  }
}

void GradientFacts::find_scores(const Query& query, const PairRow& pairs) {
  const op::AttentionParams& p = gradients_.params();
  const bool biased_last = p.bias == "post_scale" || p.bias == "alibi";
  for (std::size_t n = 0; n < last_; ++n) {
    const double t = pairs.products[n], s = pairs.scores[n];
    const double inner = !biased_last ? s : p.softcap == 0 ? t : p.softcap * std::tanh(t / p.softcap);
    // A weight's own score is a part of lse.
    const double weight = terms_[kSquare][n] * (what_ == Of::queries ? 1 : 1 - 2 * pairs.weights[n]);
    terms_[kInnerSquare][n] = weight * inner * inner;
    terms_[kScoredSquare][n] = weight * s * s;
    terms_[kLargestScore][n] = std::max(std::fabs(t), std::fabs(s));
    terms_[kStatistic][n] = what_ == Of::queries ? square(pairs.weights[n] * terms_[kLargestScore][n])
                                                 : terms_[kSquare][n] * query.statistic;
    terms_[kLargestSink][n] = query.sink;
  }
}

void GradientFacts::find_gradient_terms(const Query& query, const GradientHead& head, const PairRow& pairs) {
  const double* key_norms = head.errors->keys.norms.data() + pairs.keys.begin;
  const double* value_norms = head.errors->values.norms.data() + pairs.keys.begin;
  const bool capped = query.cap != 0 && what_ != Of::capped_bias;
  for (std::size_t n = 0; n < last_; ++n) {
    const double slope = capped ? pairs.slopes[n] : 1, y = pairs.gradients[n], p = pairs.weights[n];
    const double w = y * slope, size = std::fabs(w), b = query.gradient * value_norms[n];
    const double slack = capped ? 12 * std::fabs(y) : 0;
    terms_[kWeight][n] = p * w * w;
    terms_[kProducts][n] = p * square(size * terms_[kLargestProduct][n] + slope * b);
    terms_[kArithmetic][n] =
        p * square(size * terms_[kLargestArgument][n] + slack + slope * query.steps * query.dot_magnitude);
    terms_[kLength][n] = what_ == Of::keys ? square(query.norm) : square(key_norms[n]);
    terms_[kLargestGradient][n] = size;
    // d log(p slope) / ds is slope - 2 tanh / softcap, and 1 - slope is tanh^2.
    const double change = capped ? square(slope) + 4 * (1 - slope) * square(query.cap) : 1;
    const double weight = square(p * w);
    terms_[kSquare][n] = weight;
    terms_[kChange][n] = p * change;
    terms_[kReach][n] = p * square(slope);
    terms_[kScore][n] = p * pairs.products[n] * std::sqrt(change);
    terms_[kScoreSecond][n] *= weight * change;
    terms_[kScoreSquare][n] *= weight * change;
    terms_[kArgumentSquare][n] *= weight * change;
    const double reach = square(p * slope);
    const double spread = reach * square(b + query.dot_magnitude);
    terms_[kSpread][n] = spread;
    terms_[kShare][n] = what_ == Of::queries || what_ == Of::keys ? p : spread;
    terms_[kGradientSecond][n] = reach * query.gradient_second * square(value_norms[n]);
    terms_[kGradientSquare][n] = reach * query.dot2;
    // The slope is 1 - tanh^2, and tanh has an error of 2 ulp.
    terms_[kSaturation][n] = capped ? square(p * y * (1 - slope)) : 0;
    terms_[kDotVariance][n] = (what_ == Of::queries ? 0 : reach * query.dot_variance) +
                              (capped && what_ != Of::bias ? 4 * kTanhVariance * terms_[kSaturation][n] : 0);
  }
}

void GradientFacts::find_value_terms(const Query& query, const PairRow& pairs) {
  for (std::size_t n = 0; n < last_; ++n) {
    const double p = pairs.weights[n], slope = query.cap == 0 ? 1 : pairs.slopes[n];
    const double weight = square(p);
    terms_[kWeight][n] = p;
    terms_[kProducts][n] = p * square(terms_[kLargestProduct][n]);
    terms_[kArithmetic][n] = p * square(terms_[kLargestArgument][n]);
    terms_[kLength][n] = square(query.gradient);
    terms_[kLargestGradient][n] = 1;
    terms_[kSquare][n] = weight;
    terms_[kScore][n] = p * pairs.products[n] * slope;
    terms_[kScoreSecond][n] *= weight * square(slope);
    terms_[kScoreSquare][n] *= weight * square(slope);
    terms_[kArgumentSquare][n] *= weight;
    terms_[kShare][n] = p;
    terms_[kSpread][n] = terms_[kGradientSecond][n] = terms_[kGradientSquare][n] = terms_[kDotVariance][n] = 0;
    terms_[kSaturation][n] = 0;
  }
}

void GradientFacts::find_shifts(const PairRow& pairs) {
  const Rounder rounded(gradients_.multiplied());
  const double factor = what_ == Of::values ? 1 : std::fabs(gradients_.problem().factor());
  for (std::size_t n = 0; n < last_; ++n) {
    const double x = what_ == Of::values ? pairs.weights[n] : pairs.weights[n] * terms_[kLargestGradient][n];
    terms_[kMagnitude][n] = x;
    terms_[kShift][n] = rounded(x) - x;
    terms_[kScaledShift][n] = factor == 0 ? 0 : rounded(factor * x) / factor - x;
  }
}

void GradientFacts::add_to_row(std::size_t row, std::size_t count) {
  for (std::size_t term = 0; term < kCount; ++term) {
    double& sum = sums_[term][row];
    const double* terms = terms_[term].data();
    sum = term < kFirstMaximum ? sum + sum_of(terms, count) : std::max(sum, *std::max_element(terms, terms + count));
  }
}

void GradientFacts::add_to_rows(std::size_t row, std::size_t count) {
  for (std::size_t term = 0; term < kCount; ++term) {
    double* sums = sums_[term].data() + row;
    const double* terms = terms_[term].data();
    for (std::size_t n = 0; n < count; ++n) {
      sums[n] = term < kFirstMaximum ? sums[n] + terms[n] : std::max(sums[n], terms[n]);
    }
  }
}

double GradientFacts::change(std::size_t row) const {
  return ratio(sums_[kChange][row], sums_[kReach][row]);
}

std::span<const double> GradientFacts::spread() const {
  return std::span(terms_[kSpread]).first(last_);
}

std::span<const double> GradientFacts::saturation() const {
  return std::span(terms_[kSaturation]).first(last_);
}

void GradientFacts::store(std::size_t row, std::span<core::Buffer<float>> facts, std::size_t at) const {
  const auto sum = [&](Term term) { return sums_[term][row]; };
  const auto set = [&](GradientFact fact, double x) {
    facts[static_cast<std::size_t>(fact)][at] = static_cast<float>(x);
  };
  const bool bias = what_ == Of::bias || what_ == Of::capped_bias;
  set(GradientFact::terms, bias ? static_cast<double>(gradients_.params().batches) : sum(kTerms));
  set(GradientFact::weight, std::sqrt(sum(kWeight)));
  set(GradientFact::products, std::sqrt(sum(kProducts)));
  set(GradientFact::arithmetic, std::sqrt(sum(kArithmetic)));
  set(GradientFact::largest_product, sum(kLargestProduct));
  set(GradientFact::largest_argument, sum(kLargestArgument));
  set(GradientFact::largest_gradient, sum(kLargestGradient));
  set(GradientFact::length, sum(kLength));
  set(GradientFact::shift, ratio(std::max(std::fabs(sum(kShift)), std::fabs(sum(kScaledShift))), sum(kMagnitude)));
  set(GradientFact::score_mean, ratio(sum(kScore), sum(kPlain)));
  set(GradientFact::score_second, ratio(sum(kScoreSecond), sum(kSquare)));
  set(GradientFact::score_square, ratio(sum(kScoreSquare), sum(kSquare)));
  set(GradientFact::argument_square, ratio(sum(kArgumentSquare), sum(kSquare)));
  set(GradientFact::gradient_second, ratio(sum(kGradientSecond), sum(kShare)));
  set(GradientFact::gradient_square, ratio(sum(kGradientSquare), sum(kShare)));
  set(GradientFact::dot_variance, ratio(sum(kDotVariance), sum(kShare)));
  set(GradientFact::inner_square, ratio(sum(kInnerSquare), sum(kSquare)));
  set(GradientFact::scored_square, ratio(sum(kScoredSquare), sum(kSquare)));
  set(GradientFact::largest_score, sum(kLargestScore));
  set(GradientFact::largest_sink, sum(kLargestSink));
  set(GradientFact::statistic_square, what_ == Of::queries ? sum(kStatistic) : ratio(sum(kStatistic), sum(kSquare)));
  set(GradientFact::saturation, ratio(sum(kSaturation), sum(kShare)));
}

void GradientFacts::store_own(const Own& own, std::span<core::Buffer<float>> facts, std::size_t at) {
  const auto set = [&](GradientFact fact, double x) {
    facts[static_cast<std::size_t>(fact)][at] = static_cast<float>(x);
  };
  set(GradientFact::score_common, own.score_common);
  set(GradientFact::own_dot, own.dot);
  set(GradientFact::own_second, own.dot_second);
  set(GradientFact::own_dot_variance, own.dot_variance);
  set(GradientFact::own_statistic, own.statistic);
}

}  // namespace numcheck::reference
