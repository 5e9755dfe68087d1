// Weights and gradients of attention scores, tile by tile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "reference/attention_problem.hpp"
#include "reference/packed_product.hpp"
#include "reference/special_rows.hpp"
#include "reference/square_products.hpp"

namespace numcheck::reference {

/// Most queries and keys of one tile.
inline constexpr std::int64_t kTile = 256;

/// Positions [begin, end) of a sequence.
struct Positions {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// What error models need of the rows of one tensor of a head. Channels that are not finite do not count.
struct RowLengths {
  RowLengths(const HeadRows& rows, std::int64_t count, std::int64_t channels);
  /// sum_c x_c^2 times each channel's share.
  [[nodiscard]] double shared(const double* x) const;

  std::vector<double> norms;   ///< |x| of each row
  std::vector<double> shares;  ///< of each channel in the sum of all squares
  bool uneven = false;         ///< rows or channels differ more in length than those of normal numbers do
};

/// What error models need of one head, see tolerance::GradientFact.
struct GradientLengths {
  RowLengths queries, keys, values, gradient;
  std::vector<double> score_second;     ///< of each query: sum (q k)^2 in units of |k|^2
  std::vector<double> along;            ///< sum q^4 / |q|^4
  std::vector<double> gradient_second;  ///< sum (do v)^2 in units of |v|^2
  std::vector<double> dot_magnitude;    ///< m
  std::vector<double> dot_second;       ///< sum (do o)^2
  std::vector<double> dot_variance;     ///< s_D
  double gradient_deviation = 0;        ///< of all rows of do from their mean, relative to their root mean square
};

/// Rows that gradients are sums of.
struct SummedRows : HeadRows {
  SummedRows() = default;
  SummedRows(const HeadRows& rows, std::int64_t count, std::int64_t channels)
      : HeadRows(rows), finite(rows, count, channels) {}
  FiniteRows finite;
};

/// One head of one sequence, with what its gradients start from. See op::AttentionBwdParams.
struct GradientHead {
  std::int64_t batch = 0;
  std::int64_t index = 0;
  Lengths lengths;
  SummedRows queries, keys, gradient;
  HeadRows values, output;
  std::vector<double> lse;  ///< of each query
  std::vector<double> dot;  ///< D of each query
  std::optional<GradientLengths> errors;
  bool uneven = false;                 ///< an input is
  std::optional<SpecialRows> special;  ///< if there are any; for error models
};

/// A case of op::attention_bwd. Operands must outlive it.
class AttentionGradients {
 public:
  /// `values_only`: nothing is prepared for error models.
  AttentionGradients(const op::AttentionParams& p, std::span<const op::Operand> operands, bool values_only);

  [[nodiscard]] const AttentionProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] const op::AttentionParams& params() const noexcept { return problem_.params(); }
  /// To what numbers are rounded before they are multiplied, unless they stay in FP32: to x / scale of the format.
  struct Rounded {
    core::Dtype format = core::Dtype::fp32;
    double scale = 1;
    bool scaled = false;  ///< there is a scale, and x is multiplied by the factor of scores before
  };
  /// p, and the gradients dt of scores.
  [[nodiscard]] const Rounded& rounded_weights() const noexcept { return weights_; }
  [[nodiscard]] const Rounded& rounded_gradients() const noexcept { return changes_; }
  [[nodiscard]] bool values_only() const noexcept { return values_only_; }
  /// False if multiplying codes by their scales may, in some order, overflow in FP32 or lose bits to its subnormal range.
  /// True in modes without scales.
  [[nodiscard]] bool scales_fit() const;
  /// True if means over rows or channels say little about single ones, in any head.
  [[nodiscard]] bool uneven() const noexcept { return uneven_; }
  [[nodiscard]] const GradientHead& head(std::int64_t batch, std::int64_t index) const {
    return heads_[static_cast<std::size_t>(batch * params().heads + index)];
  }

 private:
  [[nodiscard]] GradientHead prepared(std::int64_t batch, std::int64_t index) const;
  [[nodiscard]] SpecialRows special_of(const GradientHead& head) const;

  AttentionProblem problem_;
  bool values_only_, uneven_ = false;
  Rounded weights_, changes_;
  const op::Operand& gradient_;
  const op::Operand& output_;
  const op::Operand& lse_;
  std::vector<GradientHead> heads_;
};

/// One query and the keys of a tile that it sees; all spans have an element per key.
struct PairRow {
  std::int64_t query = 0;
  op::KeyRange keys;
  std::span<const double> products;  ///< scale q k
  std::span<const double> scores;
  std::span<const double> inner;      ///< scores before a post_scale bias or alibi
  std::span<const double> weights;    ///< p
  std::span<const double> gradients;  ///< dp - D
  std::span<const double> kept;       ///< mask / (1 - dropout); empty: all 1
  std::span<const double> slopes;     ///< of the cap
  std::span<const double> key_norms, value_norms;
  std::span<const double> score_seconds, gradient_seconds;  ///< scale^2 sum (q k)^2, sum (do v)^2; of uneven cases only
};

/// p, ds and dt of some queries and keys, queries x keys; zero where a query does not see a key. One tile after the other:
/// a task keeps its memory.
class GradientTile {
 public:
  using Visit = std::function<void(const PairRow&)>;
  explicit GradientTile(const AttentionGradients& gradients) : gradients_(gradients) {}

  /// False, and nothing else happens, if no query sees any of the keys. Otherwise `visit`, if it is not empty, is called
  /// for every query that does. `head` must live on.
  [[nodiscard]] bool load(const GradientHead& head, const Positions& queries, const Positions& keys,
                          const Visit& visit);

  [[nodiscard]] std::span<const double> p() const noexcept { return p_; }
  /// p mask / (1 - dropout), or p: by what dv sums do.
  [[nodiscard]] std::span<const double> dropped() const noexcept { return drops() ? dropped_ : p_; }
  [[nodiscard]] std::span<const double> ds() const noexcept { return ds_; }
  [[nodiscard]] std::span<const double> dt() const noexcept { return is_capped() ? dt_ : ds_; }
  /// p times the slopes of the cap; only if there was something to visit.
  [[nodiscard]] std::span<const double> reach() const noexcept { return is_capped() ? reach_ : p_; }

  /// p slope mask / (1 - dropout) sqrt(sum (do v)^2), see tolerance::kDropped; only with dropout, if there was something to
  /// visit.
  [[nodiscard]] std::span<const double> spread() const noexcept { return spread_; }

  /// out[i] += sum_j factor[i, j] rows[j] over the keys of the tile, or with `to_keys` out[j] += sum_i factor[i, j] rows[i].
  /// Only pairs that see each other count: rows may hold what is not finite. `rows` are those of the head that was loaded.
  void add(std::span<const double> factor, bool to_keys, const SummedRows& rows, std::int64_t channels,
           std::span<double> out);
  /// The same with `stride` elements from row to row of out.
  void add(std::span<const double> factor, bool to_keys, const SummedRows& rows, std::int64_t channels, double* out,
           std::int64_t stride);
  /// The same with squares of rows: `weighted` gets them times p, `squared` times the squares of `factor`.
  void add_squares(std::span<const double> factor, bool to_keys, const SummedRows& rows, std::int64_t channels,
                   std::span<double> weighted, std::span<double> squared);
  /// Only the latter.
  void add_squares(std::span<const double> factor, bool to_keys, const SummedRows& rows, std::int64_t channels,
                   std::span<double> squared);
  /// out += sum of terms, which are no less than 0, times squares of rows; channels that are not finite do not count.
  void add_terms(std::span<const double> terms, bool to_keys, const SummedRows& rows, std::int64_t channels,
                 std::span<double> out);

 private:
  [[nodiscard]] bool is_capped() const noexcept { return gradients_.params().softcap != 0; }
  [[nodiscard]] bool drops() const noexcept { return !gradients_.problem().dropout().is_none(); }
  /// Sets the products q k in p_ and do v in ds_.
  void multiply_rows();
  /// factor^2 times the product of squares.
  void product_of_squares(const HeadRows& left, const HeadRows& right, std::int64_t channels, double factor,
                          std::vector<double>& out) const;
  /// Calls body(number in factor, row of rows, row of out) for every pair that sees each other.
  template <class Body>
  void for_each_pair(bool to_keys, const Body& body) const;
  [[nodiscard]] op::KeyRange seen_by(std::int64_t i) const;
  /// Row i of a tile's numbers, of these keys; empty if `all` is.
  [[nodiscard]] std::span<double> part(std::vector<double>& all, std::int64_t i, const op::KeyRange& keys) const;
  /// Turns row i of the two products q k and do v into p, ds and dt. Its steps, of the keys that it sees, in this order:
  void differentiate(std::int64_t i, const Visit& visit);
  /// Turns products into p, and sets the slopes of a cap. If the row will be visited, keeps what it is on the way.
  void weigh(std::int64_t i, const op::KeyRange& seen, bool visited);
  /// Multiplies dp by what dropout keeps, and sets dropped().
  void drop(std::int64_t i, const op::KeyRange& seen);
  /// Sets spread().
  void store_spread(std::int64_t i, const op::KeyRange& seen);
  void show(std::int64_t i, const op::KeyRange& seen, const Visit& visit);
  /// Sets what the row does not see to 0.
  void clear_unseen(std::int64_t i, const op::KeyRange& seen);

  const AttentionGradients& gradients_;
  const GradientHead* head_ = nullptr;
  PackedRows queries_left_, gradient_left_;
  PackedFactor<double> keys_right_, values_right_;                       ///< of products of channels
  PackedFactor<double> summed_keys_, summed_queries_, summed_gradient_;  ///< of sums over keys and queries
  Positions queries_, keys_;
  std::vector<double> p_, ds_, dt_, reach_;                         ///< the last two with a cap
  std::vector<double> dropped_, spread_;                            ///< with dropout
  std::vector<double> products_, inner_, scores_, shifted_, kept_;  ///< of one query
  std::vector<double> score_seconds_, gradient_seconds_;            ///< of all; in uneven cases
  SquareProducts square_products_;
};

}  // namespace numcheck::reference
