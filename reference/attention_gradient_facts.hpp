// What the error model of attention's gradients has to know of each row (tolerance::GradientFact), summed tile by tile.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "reference/attention_tile.hpp"
#include "reference/equal_weights.hpp"
#include "reference/gradient_fact_kernels.hpp"
#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference {

/// What dq's facts say of the errors of every query's log-sum-exp, which the other gradients have as well; empty while those
/// of dq are found. GradientFact::statistic_square, statistic_second, largest_product and largest_argument.
struct StatisticFacts {
  std::span<const float> square{}, second{}, product{}, argument{};
};

/// The facts of some rows, under construction.
class GradientFacts {
 public:
  /// How p w and its other factor make up a sum.
  enum class Of {
    queries,      ///< dq: over keys, w = (dp - D) slope
    keys,         ///< dk: over queries
    values,       ///< dv: over queries, w = 1
    bias,         ///< dbias before the scale: w = (dp - D) slope, per pair; a row's facts are means
    capped_bias,  ///< dbias after the cap: w = dp - D
  };
  GradientFacts(Of what, const AttentionGradients& gradients, std::size_t rows, const StatisticFacts& statistics);

  /// Adds the pairs of a query. `row` is the first of its rows: of dq and dbias the only one, otherwise that of its first
  /// key.
  void add(const GradientHead& head, const PairRow& pairs, std::size_t row);
  /// Z of each pair that was added last, in the order of its keys; of bias gradients.
  [[nodiscard]] std::span<const double> spread() const;
  /// (p (dp - D) tanh^2)^2 of each pair that was added last; of bias gradients before the cap.
  [[nodiscard]] std::span<const double> saturation() const;
  /// (p w)^2 ((1 - 2 p) max(s'^2, s^2) + N2) of each pair that was added last; of bias gradients.
  [[nodiscard]] std::span<const double> scored();
  /// Writes the facts of row `row` to element `at` of the buffers.
  void store(std::size_t row, std::span<core::Buffer<float>> facts, std::size_t at) const;
  /// Those that errors of a row's own operand need.
  struct Own {
    double score_common = 0, dot = 0, dot_second = 0, dot_variance = 0, statistic = 0;
    bool equal_values = false;
  };
  /// GradientFact::equal_values of d_v products with that sum and sum of squares; not of none.
  [[nodiscard]] static bool are_equal_values(const op::AttentionParams& p, double sum, double squares) {
    const auto width = static_cast<double>(p.value_channels());
    return sum != 0 && round_alike(width, squares * width - sum * sum, sum * sum);
  }
  static void store_own(const Own& own, std::span<core::Buffer<float>> facts, std::size_t at);
  /// A term of each pair that was added last, before it is weighed with |x|^2; of dq, dk and dv only if the case is
  /// uneven.
  [[nodiscard]] std::span<const double> plain(PairTerm term) const;
  /// Of a row.
  [[nodiscard]] double sum(PairTerm term, std::size_t row) const { return sums_[at(term, row)]; }
  /// sum p of a row.
  [[nodiscard]] double weight(std::size_t row) const { return sum(kPlain, row); }
  /// By how much more a score's error changes w than the cap's slope says: mean square over that of the slope.
  [[nodiscard]] double change(std::size_t row) const;

 private:
  [[nodiscard]] QueryTerms query_of(const GradientHead& head, std::int64_t i) const;
  /// What rounding changes in the sum of a row's p |w|; without its sign if kernels may round one of two numbers.
  [[nodiscard]] double shift(std::size_t row) const;
  /// GradientFact::equal_weights of a row.
  [[nodiscard]] double equal_weights(std::size_t row) const;
  /// GradientFact::common_shift times sum p.
  [[nodiscard]] double common_shift(std::size_t row) const;
  /// Finds the terms of a query's pairs.
  void find_terms(const GradientHead& head, const PairRow& pairs);
  void note_dropped(const QueryTerms& query, const PairRow& pairs);
  /// Rows share all pairs of a query, or each has its own: terms are together in the first case.
  [[nodiscard]] std::size_t at(PairTerm term, std::size_t row) const {
    return has_pairs_of_a_query() ? row * kPairTerms + term : term * rows_ + row;
  }
  [[nodiscard]] bool has_pairs_of_a_query() const { return what_ != Of::keys && what_ != Of::values; }

  Of what_;
  const AttentionGradients& gradients_;
  StatisticFacts statistics_;
  AttentionGradients::Rounded rounded_;
  RoundingConstants format_;
  std::size_t rows_;
  std::size_t last_ = 0;
  std::vector<double> sums_;
  double terms_[kPairTerms][kPairStride] = {};
  std::vector<EqualWeights> equal_weights_;  ///< of each row of dv
  double summed_deviation_ = 0;              ///< the largest GradientLengths::gradient_deviation
  std::vector<double> plain_, scored_;
  std::vector<double> value_norms_, gradient_seconds_;  ///< of the kept values; only with dropout
};

}  // namespace numcheck::reference
