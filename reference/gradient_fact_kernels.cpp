// Compiled once per instruction set: NUMCHECK_ISA is the namespace. The pragmas say what compilers cannot see: that terms
// are not where a query's pairs are.
#include "reference/gradient_fact_kernels.hpp"

#include "reference/kernel_math.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

inline double square(double x) {
  return x * x;
}

inline double rounded(const RoundingConstants& format, double x) {
  const double high = x * format.split;
  const double split = high - (high - x), shifted = (x + format.shift) - format.shift;
  return x < format.normal ? shifted : split;
}

void arguments(const QueryTerms& given, const PairLanes& pairs, PairTerms terms) {
  const QueryTerms query = given;
  const double* const products = pairs.products;
  const double* const scores = pairs.scores;
  const double* const weights = pairs.weights;
  const double* const key_norms = pairs.key_norms;
  const double a = query.factor * (1 + 2 * query.steep) * query.norm;
  const double round_variance = query.round_variance, tanh_variance = query.tanh_variance;
  const double lse = query.lse, absolute_lse = __builtin_fabs(lse), lse2 = 2 * square(lse), most = query.most;
#pragma GCC ivdep
  for (std::size_t n = 0; n < pairs.count; ++n) {
    const double t = products[n], s = scores[n], magnitude = a * key_norms[n];
    const double arguments = __builtin_fabs(t) + __builtin_fabs(s) + absolute_lse;
    const double slack = kSlackOfProducts * magnitude + kSlackOfScores * arguments;
    const double counts = (lse - s < kVanishes + slack) | (magnitude > most) ? 1.0 : 0.0;
    terms[kTerms][n] = 1;
    terms[kPlain][n] = weights[n];
    terms[kLargestProduct][n] = counts * magnitude;
    terms[kLargestArgument][n] = counts * (5 * (arguments + __builtin_fabs(s - lse)) + 8);
    terms[kLargestScore][n] = counts;
    terms[kScoreSecond][n] = query.score_second * square(key_norms[n]) + query.along * t * t;
    terms[kScoreSquare][n] = t * t;
    terms[kPlainScore][n] = weights[n] * t;
    terms[kPlainScoreSquare][n] = weights[n] * t * t;
    terms[kArgumentSquare][n] = round_variance * (2 * t * t + s * s + lse2 + square(s - lse)) + tanh_variance * s * s;
  }
  for (std::size_t n = 0; n < pairs.count && pairs.score_seconds != nullptr; ++n) {
    terms[kScoreSecond][n] = pairs.score_seconds[n];
  }
}

template <bool kCapped>
void gradient_terms_of(const QueryTerms& given, const PairLanes& pairs, const TermChoice& choice, PairTerms terms) {
  const QueryTerms query = given;
  const double* const products = pairs.products;
  const double* const weights = pairs.weights;
  const double* const gradients = pairs.gradients;
  const double* const slopes = pairs.slopes;
  const double* const key_norms = pairs.key_norms;
  const double* const value_norms = pairs.value_norms;
  const double cap2 = square(query.steep);
  const double dot_variance = choice.has_dot_variance ? query.dot_variance : 0;
  const double tanh_variance = choice.has_tanh_variance ? 4 * query.tanh_variance : 0;
#pragma GCC ivdep
  for (std::size_t n = 0; n < pairs.count; ++n) {
    const double slope = kCapped ? slopes[n] : 1, y = gradients[n], p = weights[n];
    const double w = y * slope, size = __builtin_fabs(w), b = query.gradient * value_norms[n];
    terms[kLargestChange][n] = b + query.dot_magnitude;
    terms[kLargestTerm][n] = p * size;
    const double slack = kCapped ? 12 * __builtin_fabs(y) : 0;
    terms[kWeight][n] = p * w * w;
    terms[kProducts][n] = p * square(size * terms[kLargestProduct][n] + slope * b);
    terms[kArithmetic][n] =
        p * square(size * terms[kLargestArgument][n] + slack + slope * query.steps * query.dot_magnitude);
    terms[kLength][n] = square(key_norms[n]);
    terms[kLargestGradient][n] = size;
    // d log(p slope) / ds is slope - 2 tanh / softcap, and 1 - slope is tanh^2.
    const double change = kCapped ? square(slope) + 4 * (1 - slope) * cap2 : 1;
    const double least = kLeastGradient * slope * (b + query.dot_magnitude);
    const double weight = square(p) * (square(w) + square(least));
    terms[kOwnSquare][n] = square(p * w);
    terms[kSquare][n] = weight;
    terms[kChange][n] = p * change;
    terms[kReach][n] = p * square(slope);
    terms[kScore][n] = p * products[n] * (kCapped ? __builtin_sqrt(change) : 1);
    terms[kScoreSecond][n] *= weight * change;
    terms[kScoreSquare][n] *= weight * change;
    terms[kArgumentSquare][n] *= weight * change;
    const double reach = square(p * slope), dp = y + query.dot;
    terms[kReachSquare][n] = reach;
    terms[kPlainGradient][n] = p * dp;
    terms[kPlainGradientSquare][n] = p * dp * dp;
    const double spread = reach * square(b + query.dot_magnitude);
    terms[kSpread][n] = spread;
    terms[kShare][n] = p;
    terms[kGradientSecond][n] = reach * query.gradient_second * square(value_norms[n]);
    terms[kGradientSquare][n] = reach * square(query.dot);
    // The slope is 1 - tanh^2, and tanh has an error of 2 ulp.
    const double saturation = kCapped ? square(p * y * (1 - slope)) : 0;
    terms[kSaturation][n] = saturation;
    terms[kDotVariance][n] = reach * dot_variance + (kCapped ? tanh_variance * saturation : 0);
  }
}

void gradient_terms(const QueryTerms& query, const PairLanes& pairs, const TermChoice& choice, PairTerms terms) {
  if (choice.capped) {
    gradient_terms_of<true>(query, pairs, choice, terms);
  } else {
    gradient_terms_of<false>(query, pairs, choice, terms);
  }
  // Choices in the loop would keep compilers from vectorising it.
  for (std::size_t n = 0; n < pairs.count && choice.sums_queries; ++n) {
    terms[kLength][n] = square(query.norm);
  }
  for (std::size_t n = 0; n < pairs.count && pairs.gradient_seconds != nullptr; ++n) {
    const double slope = choice.capped ? pairs.slopes[n] : 1;
    terms[kGradientSecond][n] = square(pairs.weights[n] * slope) * pairs.gradient_seconds[n];
    // |do| |v| of a pair whose longest channel meets a 0 says nothing, and would take the row's errors from other pairs.
    const double b = __builtin_sqrt(query.width * pairs.gradient_seconds[n]);
    terms[kSpread][n] = square(pairs.weights[n] * slope * (b + query.dot_magnitude));
  }
  for (std::size_t n = 0; n < pairs.count && !choice.shares_weight; ++n) {
    terms[kShare][n] = terms[kSpread][n];
  }
}

template <bool kCapped, bool kDropped>
void value_terms_of(const QueryTerms& query, const PairLanes& pairs, PairTerms terms) {
  constexpr PairTerm kNone[] = {kLargestChange, kLargestTerm, kSpread,      kGradientSecond, kGradientSquare,
                                kDotVariance,   kSaturation,  kReachSquare, kPlainGradient,  kPlainGradientSquare};
  for (const PairTerm term : kNone) {
    __builtin_memset(terms[term], 0, pairs.count * sizeof(double));
  }
  const double* const products = pairs.products;
  const double* const weights = pairs.weights;
  const double* const slopes = pairs.slopes;
  const double* const kept = pairs.kept;
  const double gradient2 = square(query.gradient);
#pragma GCC ivdep
  for (std::size_t n = 0; n < pairs.count; ++n) {
    const double p = weights[n], slope = kCapped ? slopes[n] : 1, w = kDropped ? kept[n] : 1;
    const double weight = square(p * w);
    terms[kOwnSquare][n] = weight;
    terms[kWeight][n] = p * w * w;
    terms[kProducts][n] = p * square(w * terms[kLargestProduct][n]);
    terms[kArithmetic][n] = p * square(w * terms[kLargestArgument][n]);
    terms[kLength][n] = gradient2;
    terms[kLargestGradient][n] = w;
    terms[kSquare][n] = weight;
    terms[kScore][n] = p * products[n] * slope;
    terms[kScoreSecond][n] *= weight * square(slope);
    terms[kScoreSquare][n] *= weight * square(slope);
    terms[kArgumentSquare][n] *= weight;
    terms[kShare][n] = p;
  }
}

void value_terms(const QueryTerms& query, const PairLanes& pairs, PairTerms terms) {
  // Choices in the loop would keep compilers from vectorising it.
  if (query.cap != 0) {
    (pairs.kept != nullptr ? value_terms_of<true, true> : value_terms_of<true, false>)(query, pairs, terms);
  } else {
    (pairs.kept != nullptr ? value_terms_of<false, true> : value_terms_of<false, false>)(query, pairs, terms);
  }
}

template <bool kSumsKeys>
void score_terms_of(const QueryTerms& given, const PairLanes& pairs, PairTerms terms) {
  const QueryTerms query = given;
  const double sink = query.sink, statistic = query.statistic, statistic_second = query.statistic_second;
  const double* const products = pairs.products;
  const double* const key_norms = pairs.key_norms;
  const double* const scores = pairs.scores;
  const double* const inner = pairs.inner;
  const double* const weights = pairs.weights;
#pragma GCC ivdep
  for (std::size_t n = 0; n < pairs.count; ++n) {
    const double s = scores[n], p = weights[n], squared = terms[kOwnSquare][n];
    const double t_size = __builtin_fabs(products[n]), s_size = __builtin_fabs(s);
    const double largest = t_size < s_size ? s_size : t_size;
    // A weight's own score is a part of lse.
    const double weight = kSumsKeys ? squared : squared * (1 - 2 * p);
    terms[kInnerSquare][n] = weight * inner[n] * inner[n];
    terms[kScoredSquare][n] = weight * s * s;
    const double counts = terms[kLargestScore][n];
    terms[kLargestScore][n] = counts * largest;
    // A score's terms may be larger than the score, which says how much they cancel.
    const double second = query.score_second * square(key_norms[n]) + query.along * square(t_size);
    const double larger = second < square(largest) ? square(largest) : second;
    terms[kStatistic][n] = kSumsKeys ? square(p * largest) : squared * statistic;
    terms[kStatisticSecond][n] = kSumsKeys ? square(p) * larger : squared * statistic_second;
    terms[kLargestStatisticProduct][n] = counts * (kSumsKeys ? terms[kLargestProduct][n] : query.statistic_product);
    terms[kLargestStatisticArgument][n] = counts * (kSumsKeys ? terms[kLargestArgument][n] : query.statistic_argument);
    terms[kLargestSink][n] = sink;
  }
  for (std::size_t n = 0; kSumsKeys && n < pairs.count && pairs.score_seconds != nullptr; ++n) {
    const double second = square(weights[n]) * pairs.score_seconds[n];
    terms[kStatisticSecond][n] = second < terms[kStatistic][n] ? terms[kStatistic][n] : second;
  }
}

void score_terms(const QueryTerms& query, const PairLanes& pairs, bool sums_keys, PairTerms terms) {
  if (sums_keys) {
    score_terms_of<true>(query, pairs, terms);
  } else {
    score_terms_of<false>(query, pairs, terms);
  }
}

void lengthen(std::size_t count, bool has_statistic, PairTerms terms) {
  constexpr PairTerm kMeans[] = {kSquare,         kScoreSecond,    kScoreSquare, kArgumentSquare, kShare,
                                 kGradientSecond, kGradientSquare, kDotVariance, kInnerSquare,    kScoredSquare,
                                 kSaturation,     kReachSquare,    kOwnSquare};
  const double* const length = terms[kLength];
  for (const PairTerm term : kMeans) {
    double* const row = terms[term];
#pragma GCC ivdep
    for (std::size_t n = 0; n < count; ++n) {
      row[n] *= length[n];
    }
  }
  for (std::size_t n = 0; n < count && has_statistic; ++n) {
    terms[kStatistic][n] *= length[n];
    terms[kStatisticSecond][n] *= length[n];
  }
}

void shifts(const RoundingConstants& given, double factor, const PairLanes& pairs, PairTerms terms) {
  const RoundingConstants format = given;
  const double* const weights = pairs.weights;
  const double* const gradients = pairs.gradients;
#pragma GCC ivdep
  for (std::size_t n = 0; n < pairs.count; ++n) {
    const double x = weights[n] * terms[kLargestGradient][n];
    terms[kMagnitude][n] = x;
    terms[kShift][n] = rounded(format, x) - x;
    terms[kScaledShift][n] = factor == 0 ? 0 : rounded(format, factor * x) / factor - x;
    const double sign = gradients[n] < 0 ? -1.0 : 1.0;
    terms[kSignedShift][n] = sign * terms[kShift][n];
    terms[kScaledSignedShift][n] = sign * terms[kScaledShift][n];
  }
}

void add_to_row(PairTerms terms, std::size_t count, double* sums) {
  for (std::size_t term = 0; term < kFirstMaximum; ++term) {
    sums[term] += sum_of(terms[term], count);
  }
  for (std::size_t term = kFirstMaximum; term < kPairTerms; ++term) {
    const double largest = largest_of(terms[term], count);
    sums[term] = sums[term] < largest ? largest : sums[term];
  }
}

void add_to_rows(PairTerms terms, std::size_t count, double* sums, std::size_t rows) {
  for (std::size_t term = 0; term < kPairTerms; ++term) {
    double* const row = sums + term * rows;
    const double* const from = terms[term];
    if (term < kFirstMaximum) {
#pragma GCC ivdep
      for (std::size_t n = 0; n < count; ++n) {
        row[n] += from[n];
      }
    } else {
#pragma GCC ivdep
      for (std::size_t n = 0; n < count; ++n) {
        row[n] = row[n] < from[n] ? from[n] : row[n];
      }
    }
  }
}

constexpr GradientFactKernels kKernels = {arguments, gradient_terms, value_terms, score_terms,
                                          lengthen,  shifts,         add_to_row,  add_to_rows};

}  // namespace

const GradientFactKernels& gradient_fact_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
