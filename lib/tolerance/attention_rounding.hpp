// What attention's declared roundings to 16 bits cost, in the terms of its error models.
#pragma once

#include <string>
#include <string_view>

#include "core/dtype.hpp"
#include "model/declared_rounding.hpp"
#include "op/attention_params.hpp"

namespace numcheck::tolerance {

/// Means over keys of squares of what becomes a score, weighted alike: of the scaled product t, of the score s' before a
/// post_scale bias or alibi (but after a cap and a pre_scale bias), and of the score s.
struct ScoreSquares {
  double product = 0;
  double inner = 0;
  double score = 0;
};

/// Error of a score that is rounded to a format on its way; 0 if nothing is declared.
///
/// With n_t roundings of something below |t|, n_i below |s'| and n_s below |s|, and e = kTanhError of an approximate tanh:
///
///   bound     u (n_t |t| + n_i |s'| + n_s |s|) + e |s'| + sum h_r
///   variance  0.18 u^2 (n_t t^2 + n_i s'^2 + n_s s^2) + e^2 / 3 s'^2 + sum h_r^2 / 3
///
/// h_r is what rounding r costs where its result is subnormal: half the format's smallest number, times what multiplies the
/// result later (the scale with a pre_scale bias, the cap for the quotient and its tanh).
/// n_t is 1 with a pre_scale bias, otherwise 0; n_i is 1 for a product without one, 2 for the sum and its scaling with
/// one, and 3 more for a cap: x (1 - tanh^2), by which an error of the quotient counts, is below s', too; n_s is 1 for a
/// post_scale bias and alibi.
///
/// Where inputs have few values (`few_values`), scores have, too, and roundings are alike or ties: 1 u^2 instead of 0.18.
class ScoreRounding {
 public:
  ScoreRounding(const model::AttentionRounding& rounding, core::Dtype format, const op::AttentionParams& p,
                bool few_values);

  [[nodiscard]] bool is_none() const noexcept { return unit_ == 0 && tanh_ == 0; }
  /// Root of the mean square of the bounds, by Minkowski.
  [[nodiscard]] double bound(const ScoreSquares& squares) const;
  [[nodiscard]] double variance(const ScoreSquares& squares) const;
  /// n_i
  [[nodiscard]] double inner_steps() const noexcept { return inner_; }
  /// Bound of every score, if none of t, s' and s exceeds `largest`.
  [[nodiscard]] double bound(double largest) const;
  /// True if six standard deviations of such a score's error are more than 2: two keys whose weights are 1 and 0 may be
  /// alike, and what the exact weights say of errors means nothing.
  [[nodiscard]] bool may_exchange_keys(double largest) const;

 private:
  double unit_ = 0, square_ = 0, tanh_ = 0;  ///< u, the mean square of a rounding's error, e
  double products_ = 0, inner_ = 0, scores_ = 0;
  double lost_ = 0, lost_square_ = 0;  ///< sum of h_r and of their squares
};

/// The declared roundings that matter to an output (o, lse, max_logit, dq, dk, dv, dbias, dsoftmax_offset) of such a case.
[[nodiscard]] model::AttentionRounding roundings_of(const model::AttentionRounding& declared, std::string_view port,
                                                    const op::AttentionParams& p);

/// What is rounded, as a sentence: "scores and weights are stored in bf16". Empty if nothing is.
[[nodiscard]] std::string describe(const model::AttentionRounding& rounding, std::string_view format);

}  // namespace numcheck::tolerance
