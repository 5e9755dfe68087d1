// Blocked attention of one head in double: the softmax of some queries' scores, block by block of keys.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "reference/attention_contenders.hpp"
#include "reference/attention_head.hpp"
#include "reference/attention_problem.hpp"
#include "reference/packed_product.hpp"
#include "reference/square_products.hpp"
#include "tolerance/attention_max_model.hpp"
#include "tolerance/attention_model.hpp"

namespace numcheck::reference {

/// Queries [first, first + count) of a head. Scores never exist as a whole: keys come in blocks, and the largest score so
/// far is taken out of the sums. With AttentionHead::values_only, only output(), lse() and largest_weight() may be asked.
class AttentionBlock {
 public:
  AttentionBlock(const AttentionHead& head, std::int64_t first, std::int64_t count);
  void run();

  /// Of query first + i. The log-sum-exp; the largest weight of a key; an output's channel, and its rho and W
  /// (tolerance::attention_error).
  [[nodiscard]] double lse(std::int64_t i) const;
  [[nodiscard]] double largest_weight(std::int64_t i) const;
  [[nodiscard]] double output(std::int64_t i, std::int64_t channel) const;
  /// False if the query sees only keys of score -infinity (kernels may take it for one that sees nothing, or give NaN), or
  /// if its scores may overflow in FP32 or are as close as their errors are large, or if the sink is infinite.
  [[nodiscard]] bool is_determined(std::int64_t i) const;
  /// True if a score is NaN or infinite, or the sink NaN: exp(score - largest) is NaN in any arithmetic, and so are the
  /// output and the log-sum-exp. Not with an infinite sink, which kernels subtract or not.
  [[nodiscard]] bool is_nan(std::int64_t i) const;
  /// True if an infinite value has so small a weight that it may be rounded to 0, and 0 times infinity is NaN, or if finite
  /// ones may overflow before they are divided by the sum of weights, and infinity minus infinity is NaN as well.
  [[nodiscard]] bool may_be_nan(std::int64_t i, std::int64_t channel) const;
  /// True if terms, with the scale of dropout, may overflow before they are divided by the sum of weights.
  [[nodiscard]] bool may_overflow(std::int64_t i, std::int64_t channel) const;
  [[nodiscard]] double spread(std::int64_t i, std::int64_t channel) const;
  [[nodiscard]] double squares(std::int64_t i, std::int64_t channel) const;
  [[nodiscard]] double fact(std::int64_t i, tolerance::AttentionFact which) const;
  /// The largest score of a key, -infinity if there is none; and, only with AttentionParams::max_logit, whether no score is
  /// NaN and what its error model needs.
  [[nodiscard]] double max_logit(std::int64_t i) const { return rows_[static_cast<std::size_t>(i)].top; }
  [[nodiscard]] bool is_max_determined(std::int64_t i) const { return !rows_[static_cast<std::size_t>(i)].has_nan; }
  using MaxLogitFacts = std::array<double, static_cast<std::size_t>(tolerance::MaxLogitFact::count)>;
  [[nodiscard]] MaxLogitFacts max_facts(std::int64_t i) const;
  /// |argument of the cap| of a key's product; 0 without a cap. Not beyond 17 caps where a bias is added first.
  [[nodiscard]] double capped_argument(std::int64_t i, std::int64_t key, double product) const;

 private:
  /// Sums over keys of count x width values: sum e v, and for error models sum e v^2 and sum e^2 v^2.
  struct Sums {
    std::vector<double> plain, of_squares, squared;
    std::vector<double> least_infinite;  ///< smallest e of a value that is infinite in TF32
    std::vector<double> keys;            ///< count x d: sum e k over the finite channels, of FP32 tensors
    /// Of row i of so many.
    void shrink(std::size_t i, std::size_t count, double factor);
  };
  struct Row {
    op::KeyRange visible;
    double largest = -std::numeric_limits<double>::infinity();  ///< score so far, and the sink
    double sum = 0;                                             ///< of e = exp(score - largest), and the sink's
    double top = -std::numeric_limits<double>::infinity();      ///< largest score of a key
    double own = 0;                                             ///< sum of e without the sink
    double equal = 0;                                 ///< with dropout, sum of e of scores close to the largest
    double keys = 0;                                  ///< sum of e |k|^2
    double excess = 0;                                ///< sum of e x, x = max(|t|, |s|) - s
    double excess2 = 0;                               ///< sum of e x^2
    double squares = 0;                               ///< sum of e t^2
    double score = 0;                                 ///< sum of e s
    double score2 = 0;                                ///< sum of e s^2
    double inner2 = 0;                                ///< sum of e s'^2, s' before a post_scale bias or alibi
    double power2 = 0;                                ///< sum of e^2
    double rounded1 = 0, rounded2 = 0, rounded3 = 0;  ///< sums of x^2 times e, e^2, e^3; x = max(|t|, |s|)
    double reach = 0;                                 ///< max of |t|, |s|
    Contenders contenders;                            ///< of FP8 scores
    Contenders in_fp32, in_tf32;                      ///< of scores in wider formats
    double products2 = 0;                             ///< where they are measured, sum of e (sum_c |q_c k_c|)^2
    double signs = 0;                                 ///< of FP8 scores, sum of e sum_c sign(q_c k_c)
    double least = 0;           ///< weight below which FP16 numerators, or FP8 weights, are subnormal
    std::int64_t top_key = -1;  ///< of the largest score; only with max_logit
    double rivals = 0;          ///< scores close to the largest one
    /// The largest x |q| |k_j| + s_j / 6, see tolerance::MaxLogitFact::upset.
    double upset = -std::numeric_limits<double>::infinity(), tf32_upset = upset, bf16_upset = upset, fp16_upset = upset;
    bool has_nan = false;  ///< a score is NaN; only known with max_logit, or while no score exceeds -infinity
  };

  /// tolerance::AttentionFact::scatter
  [[nodiscard]] static double scatter(const Row& row);
  [[nodiscard]] double part(const std::vector<double>& sums, std::int64_t i, std::int64_t channel) const;
  [[nodiscard]] std::span<double> scores_of(std::int64_t i, const op::KeyRange& keys, const op::KeyRange& part);
  /// Queries from the first to the last that sees any of the keys, from first_ on.
  [[nodiscard]] op::KeyRange queries_that_see(const op::KeyRange& keys) const;
  void add(const op::KeyRange& keys);
  /// Sums of magnitudes of the products of these queries and keys, in FP8 of their signs as well.
  void add_lengths(const op::KeyRange& queries, const op::KeyRange& keys);
  /// Adds weights times values of these queries; the values are finite.
  void add_values(const op::KeyRange& queries, const op::KeyRange& keys);
  /// Adds weights times keys of these queries, for AttentionFact::score_common.
  void add_keys(const op::KeyRange& queries, const op::KeyRange& keys);
  /// Multiplies a row's weights by the dropout mask and its scale.
  void drop(std::int64_t i, const op::KeyRange& keys);
  /// Turns a row's products into exp(score - largest), 0 where a key is not seen.
  void weigh(std::int64_t i, const op::KeyRange& keys);
  /// Turns products of query first_ + i into scores, and keeps what add_facts needs.
  ScoreRange score_with_copies(std::int64_t i, const op::KeyRange& keys, std::span<double> products);
  /// Updates what max_facts needs with the scores of keys from first_key on; before `top` is.
  void note_largest(std::int64_t i, std::span<const double> scores, std::int64_t first_key);
  /// Updates `upset` with the scores of keys from first_key on.
  void note_upsets(std::int64_t i, std::span<const double> scores, std::int64_t first_key);
  /// How close to the largest score another one is a rival: errors of products in TF32 exchange them seldom.
  [[nodiscard]] double rival_distance(std::int64_t i, double score) const;
  /// Adds what error models need of a row's weights to its sums.
  void add_facts(std::int64_t i, Row& row, std::span<const double> weights, std::int64_t first_key) const;
  /// tolerance::AttentionFact::contest
  [[nodiscard]] double contest(Contenders keys) const;
  /// Whose scores are so close that errors may exchange them.
  void note_contenders(std::int64_t i, Row& row, std::int64_t first_key) const;
  /// Values that are not finite must not reach queries that do not see them: 0 * NaN is NaN.
  void add_visible_values(const op::KeyRange& keys);

  const AttentionHead& head_;
  const op::AttentionParams& p_;
  std::int64_t first_, count_, width_;
  double swing_;                          ///< tolerance::fp8_score_swing; 0 in other modes
  double swing_in_fp32_, swing_in_tf32_;  ///< tolerance::score_swing; 0 in FP8, and where only values are needed
  bool sums_keys_;                        ///< of FP32 tensors, which may be rounded to TF32
  bool measures_lengths_;                 ///< of FP8 scores, and of keys that are uneven
  PackedRows queries_;
  PackedFactor<double> right_;   ///< keys of a block, then its values
  std::vector<double> scores_;   ///< count x keys of a block
  std::vector<double> raw_;      ///< a row's products, for error models; only with a bias
  std::vector<double> inner_;    ///< and its scores before a post_scale bias or alibi; only with one
  std::vector<double> biased_;   ///< and its scores
  std::vector<double> lengths_;  ///< count x keys of a block: sum_c |q_c k_c|
  std::vector<double> signs_;    ///< and sum_c sign(q_c k_c)
  SquareProducts square_products_;
  Sums sums_;
  std::vector<Row> rows_;
};

}  // namespace numcheck::reference
