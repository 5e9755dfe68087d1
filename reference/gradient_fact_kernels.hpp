// Loops of GradientFacts over the pairs of a query, compiled once per instruction set; all sets produce the same bits.
// Plain types only: nothing here may emit a symbol that another translation unit shares.
#pragma once

#include <cstddef>

namespace numcheck::reference {

/// Terms of one pair of a query and a key, see tolerance::GradientFact. Those up to the maxima are summed.
enum PairTerm : std::size_t {
  kTerms,
  kWeight,
  kProducts,
  kArithmetic,
  kLength,
  kSquare,
  kMagnitude,
  kShift,
  kScaledShift,
  kSignedShift,
  kScaledSignedShift,
  kPlain,
  kChange,
  kReach,
  kScore,
  kScoreSecond,
  kScoreSquare,
  kArgumentSquare,
  kShare,
  kGradientSecond,
  kGradientSquare,
  kDotVariance,
  kSpread,
  kInnerSquare,
  kScoredSquare,
  kSaturation,
  kStatistic,
  kStatisticSecond,
  kPlainScore,
  kPlainScoreSquare,
  kPlainGradient,
  kPlainGradientSquare,
  kReachSquare,
  kOwnSquare,
  kLargestProduct,
  kLargestArgument,
  kLargestGradient,
  kLargestScore,
  kLargestSink,
  kLargestChange,
  kLargestTerm,
  kLargestStatisticProduct,
  kLargestStatisticArgument,
  kPairTerms
};
inline constexpr std::size_t kFirstMaximum = kLargestProduct;

/// A weight exp(s - lse) is 0 in FP32 if s - lse is below -kVanishes by more than its error can be in any mode, declared
/// roundings of scores included: kSlackOfProducts a + kSlackOfScores (|t| + |s| + |lse|). Then it has no error to speak of
/// however large its score is. Not if the products may overflow.
inline constexpr double kVanishes = 110, kSlackOfProducts = 0x1p-9, kSlackOfScores = 0x1p-6;

/// Where dp and D cancel, w counts as this part of slope (b + m) in means: its error does not become smaller.
inline constexpr double kLeastGradient = 0x1p-12;

/// Most pairs at a time.
inline constexpr std::size_t kPairs = 256;
/// kPairTerms rows, each with one number per pair. They are no multiple of 2 KiB apart: loops over all of them would find
/// only every second one of them in a first-level cache, where they compete for the same places.
inline constexpr std::size_t kPairStride = kPairs + 8;
using PairTerms = double (*)[kPairStride];

/// What the pairs of one query have in common.
struct QueryTerms {
  double factor;  ///< |scale|
  double most;    ///< the a from which products may overflow
  double norm;    ///< |q|
  double cap;     ///< 1 / softcap, or 0
  double steep;   ///< the same where errors of the cap's slope count, otherwise 0
  double lse;
  double sink;  ///< |sink| exp(sink - lse)
  /// GradientFact::statistic_square, statistic_second, largest_product and largest_argument of dq; 0 while those are found.
  double statistic, statistic_second, statistic_product, statistic_argument;
  double score_second, along;
  double gradient;  ///< |do|
  double gradient_second;
  double dot;  ///< D
  double dot_variance;
  double dot_magnitude;   ///< m, with what underflow in products of do takes, in units of u
  double width;           ///< d_v
  double steps;           ///< d_v + 4
  double round_variance;  ///< of a rounding, in units of u^2
  double tanh_variance;   ///< of tanh, in units of (u tanh)^2; 0 without a cap
};

/// The pairs of a query: `count` numbers each.
struct PairLanes {
  std::size_t count;
  const double* products;   ///< t
  const double* scores;     ///< s
  const double* inner;      ///< s before a post_scale bias or alibi
  const double* weights;    ///< p
  const double* gradients;  ///< dp - D
  const double* slopes;     ///< of the cap, if there is one
  const double* key_norms;
  const double* value_norms;       ///< times mask / (1 - dropout)
  const double* kept;              ///< mask / (1 - dropout); null: all 1
  const double* score_seconds;     ///< scale^2 sum (q k)^2 and sum (do v)^2 of each pair; null: about
  const double* gradient_seconds;  ///< score_second |k|^2 and gradient_second |v|^2; both v times mask / (1 - dropout)
};

/// What a gradient's terms depend on.
struct TermChoice {
  bool capped;             ///< w = (dp - D) slope
  bool sums_queries;       ///< x is q: dk
  bool shares_weight;      ///< of dq and dk; of dbias terms are shares of Z
  bool has_dot_variance;   ///< not of dq
  bool has_tanh_variance;  ///< not of dbias before the cap: the saturation of its elements says it
};

/// A format to which positive numbers are rounded, to nearest even: core::round_to as arithmetic. No overflow.
struct RoundingConstants {
  double split;   ///< Veltkamp's constant: what remains of x has as many bits as the format
  double shift;   ///< adding it leaves multiples of the spacing of subnormals
  double normal;  ///< the smallest
};

struct GradientFactKernels {
  /// Errors of scores: what p and w have in common.
  void (*arguments)(const QueryTerms& query, const PairLanes& pairs, PairTerms terms);
  void (*gradient_terms)(const QueryTerms& query, const PairLanes& pairs, const TermChoice& choice, PairTerms terms);
  void (*value_terms)(const QueryTerms& query, const PairLanes& pairs, PairTerms terms);
  /// What declared roundings of scores and sinks change, and errors of lse; needs kOwnSquare.
  void (*score_terms)(const QueryTerms& query, const PairLanes& pairs, bool sums_keys, PairTerms terms);
  /// Weighs terms of means with |x|^2: pairs count by what they add to a sum's square. `has_statistic`: kStatistic and
  /// kStatisticSecond are such.
  void (*lengthen)(std::size_t count, bool has_statistic, PairTerms terms);
  /// What rounding x = p w to a format changes in |x| and in x, before and after it is scaled by `factor`.
  void (*shifts)(const RoundingConstants& format, double factor, const PairLanes& pairs, PairTerms terms);
  /// sums[term] += the terms of all pairs, or their maximum.
  void (*add_to_row)(PairTerms terms, std::size_t count, double* sums);
  /// sums[term * rows + n] += the term of pair n, or the larger.
  void (*add_to_rows)(PairTerms terms, std::size_t count, double* sums, std::size_t rows);
};

namespace baseline {
[[nodiscard]] const GradientFactKernels& gradient_fact_kernels() noexcept;
}
namespace avx2 {
[[nodiscard]] const GradientFactKernels& gradient_fact_kernels() noexcept;
}
namespace avx512 {
[[nodiscard]] const GradientFactKernels& gradient_fact_kernels() noexcept;
}

/// Those of the active instruction set.
[[nodiscard]] const GradientFactKernels& gradient_fact_kernels() noexcept;

}  // namespace numcheck::reference
