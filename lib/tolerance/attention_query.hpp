// Bounds and variances of the errors of one query of attention, forward.
#pragma once

#include <cstddef>

#include "core/dtype.hpp"
#include "model/declared_rounding.hpp"
#include "model/error_model.hpp"
#include "op/attention_params.hpp"
#include "op/reference.hpp"
#include "tolerance/attention_model.hpp"
#include "tolerance/attention_products.hpp"
#include "tolerance/attention_rounding.hpp"

namespace numcheck::tolerance {

/// The facts of one query, those of output `o`.
class QueryFacts {
 public:
  QueryFacts(const op::OutputValues& o, std::size_t query) : o_(o), query_(query) {}
  [[nodiscard]] double operator[](AttentionFact fact) const {
    return static_cast<double>(o_.row_facts[static_cast<std::size_t>(fact)][query_]);
  }

 private:
  const op::OutputValues& o_;
  std::size_t query_;
};

/// What all queries of a case have in common; letters as in attention_error.
struct QueryCommon {
  AttentionProducts products;
  double d;                     ///< products of a score
  SumError scores;              ///< of those
  ScoreRounding stored_scores;  ///< declared, of a score
  model::AttentionRounding rounding;
  core::Dtype format;     ///< of the tensors
  double unit;            ///< u_P
  double operand;         ///< v^2
  double largest_alike;   ///< c
  double cap;             ///< softcap, or 0
  double steps;           ///< roundings to FP32 besides those of sums
  AttentionFact contest;  ///< which one counts
  double largest_error;   ///< of a weight, from which on outputs could be anything
  double least;           ///< l: what subnormal values lose
  bool few_values;        ///< scores are drawn from few numbers
  bool heavy_tails;       ///< weights are stored, and the spread of scores says nothing of most of them
  bool ordered;           ///< terms of one sign may follow each other in a sum
  bool normalised;        ///< weights are, before they are rounded

  QueryCommon(const model::ModelRequest& request, const op::AttentionParams& p);
};

struct QueryError {
  double bound = 0;
  double variance = 0;
};

/// Of a query's o, over its channels.
struct QuerySizes {
  double over_seconds = 1;  ///< sum rho^2 / sum W: 1 / the mean weight
  double over_outputs = 1;  ///< sum rho^2 / sum o^2: large where values cancel
};

/// One query: what its elements have in common.
class QueryErrors {
 public:
  QueryErrors(const QueryCommon& common, const QueryFacts& facts);

  /// Of an element of o: its value, rho and W.
  [[nodiscard]] QueryError output(double o, double rho, double squares) const;
  /// Of its log-sum-exp.
  [[nodiscard]] QueryError statistic(double lse) const;
  /// Of the largest weight.
  [[nodiscard]] QueryError largest(double lse) const;
  /// By how much all of its o may be too large or too small, relative: attention_shared_slope.
  [[nodiscard]] double shared_slope(const QuerySizes& sizes) const;
  /// Mean square of the errors that its scores have in common.
  [[nodiscard]] double shared_square() const;

 private:
  /// What an element of o has of values that are rounded alike: part of its square.
  [[nodiscard]] double alike_values(double o, double rho, double squares) const;

  /// Error of a weight's numerator, relative. What all scores of a query have in common moves its log-sum-exp as well.
  struct WeightError {
    double bound, variance, shared;
    /// What all scores of a query have of operands and products that are rounded alike.
    [[nodiscard]] static double alike(const QueryCommon& common, const QueryFacts& facts);
    /// `shared` of FP8 scores, whose random errors are each key's own.
    [[nodiscard]] static double truncated(const QueryCommon& common, const QueryFacts& facts);
    WeightError(const QueryCommon& common, const QueryFacts& facts);
  };
  /// What declared roundings add.
  struct Stored {
    double bound = 0;      ///< of a weight's numerator, in root mean square
    double growth = 1;     ///< e
    double variance = 0;   ///< of a weight's numerator
    double scatter = 0;    ///< G
    double together = 0;   ///< C, the part of the variance that lse has of independent errors
    double coherent = 0;   ///< (1 - C) a_s / 0.18, that of errors which scores share
    double alike = 0;      ///< a_s
    double shift = 0;      ///< h, by which lse is off where a cap's tanh is rounded alike in all keys
    double sink = 0;       ///< u |sink|
    double equal = 0;      ///< k 0.18 u^2
    double lost = 0;       ///< of a weight that is subnormal in FP16
    double values = 0;     ///< V2
    double dropped = 0;    ///< u, if dropped weights are stored
    bool unknown = false;  ///< errors of scores say nothing of weights
    Stored(const QueryCommon& all, const QueryFacts& facts);
  };

  const QueryCommon& common_;
  double keys_, largest_, equal_;
  double argument_;  ///< AttentionFact::argument
  SumError values_;  ///< of n products
  double contest_;   ///< AttentionFact::contest of the mode
  bool rounds_largest_;
  double sink_share_;   ///< r
  double all_values_;   ///< bounds every value of the head
  double value_range_;  ///< and by how much they differ
  WeightError weights_;
  double alike_;             ///< a
  double saturated_;         ///< x
  double alike_everywhere_;  ///< a of outputs as a whole
  Stored stored_;
};

}  // namespace numcheck::tolerance
