// How attention multiplies matrices in a mode on an architecture, and what that costs.
#pragma once

#include <cstdint>
#include <span>

#include "core/dtype.hpp"
#include "model/arithmetic.hpp"
#include "model/error_model.hpp"
#include "op/attention_params.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// Error of a sum of products: its bound per sum of magnitudes, its variance per sum of squares and per square of the
/// sum; `coherent` is the part for products of one sign, `common` that which many sums of such products share. `star` and
/// `absolute` are for products of subnormal operands, see accumulation.hpp.
struct SumError {
  double bound = 0;
  double second = 0;
  double value = 0;
  double coherent = 0;
  double common = 0;
  double star = 0;
  double absolute = 0;
};

/// How products are formed, and weights and gradients of scores stored for them.
struct AttentionProducts {
  core::Dtype format = core::Dtype::fp32;  ///< of both operands
  bool chain = true;                       ///< FP32 fused multiply-adds
  bool scaled = false;                     ///< operands have scales, and so have weights
  model::Arithmetic arithmetic;

  explicit AttentionProducts(const model::ModelRequest& request);

  /// Of a sum of so many products. Whatever the mode, a kernel may multiply in an FP32 chain. Operands that are rounded to
  /// TF32 add 2 v + v^2 to the bound and 0.36 v^2 to the variance, v its unit roundoff.
  [[nodiscard]] SumError sum(std::int64_t terms) const;
  /// Unit roundoff of the format in which weights are multiplied; 0 in an FP32 chain.
  [[nodiscard]] double unit() const;
  /// The same for TF32 alone, in which tensors that are stored in FP32 are rounded as well; 0 for other formats.
  [[nodiscard]] double tf32_unit() const { return format == core::Dtype::tf32 ? unit() : 0; }
  /// Roundings of a product of two scaled operands when it is multiplied by their scales, and that of one of them before.
  [[nodiscard]] double scale_steps() const { return scaled ? 3 : 0; }
  /// True if weights are rounded to a format of 16 or 8 bits.
  [[nodiscard]] bool rounds_weights() const { return !chain && format != core::Dtype::tf32; }
};

/// True if terms of one sign may follow each other in a sum, so that partial sums are far larger than the sum.
[[nodiscard]] bool is_ordered(const model::ModelRequest& request);

/// True if the products of a query and a key are so alike that a sum of d of them rounds all of them alike: their relative
/// deviation, the root of the sum of squares of those of both operands' numbers, is at most d u, half an ulp of the sum.
[[nodiscard]] bool products_are_alike(const model::ModelRequest& request, std::int64_t d);

/// True if any input is, those that make no scores as well.
[[nodiscard]] bool is_any_ordered(const model::ModelRequest& request);

/// True if every element of queries, and every one of keys, has the same magnitude.
[[nodiscard]] bool scores_are_constant(const model::ModelRequest& request);

/// True if queries and keys are drawn from so few numbers that scores have few values, too.
[[nodiscard]] bool has_few_values(const model::ModelRequest& request);

/// True if queries, or keys, are mostly numbers of one sign.
[[nodiscard]] bool has_one_sign(const model::ModelRequest& request);

/// True if a few queries or keys, or channels of them, are so large that the spread of scores says nothing of most scores: the
/// mean of x^4 is ten times the square of that of x^2 (normal numbers: 3).
[[nodiscard]] bool has_heavy_tails(const model::ModelRequest& request);

/// Whether rows of o and of gradients have errors of their own: operands are exact, so that none of their errors is in all
/// rows, and neither are queries or keys of one sign, nor few numbers, so that weights are not rounded alike in all rows.
[[nodiscard]] bool rows_differ(const model::ModelRequest& request);

/// True if the weights of FP8 that a query or key has are rounded unlike those of others, because there are several keys,
/// and scores differ and are not mostly those of a common direction or a bias: then the scatter of rows and columns tells by how much sums are off.
[[nodiscard]] bool weights_differ(const model::ModelRequest& request, const op::AttentionParams& p);

/// Limit of the rms of e / sqrt(V) in attention's models.
inline constexpr double kAttentionKappa = 2;

/// True if all errors of an output may be the same few, of which no variance says how large they are: of inputs that are all
/// the same number, and, where a backend declares that it rounds the tanh of the cap, of inputs that are few numbers: what
/// that leaves of the cap's slope, 1 - y^2, is off by as much as itself, and in the same way wherever it is saturated.
[[nodiscard]] bool has_one_error(const model::ModelRequest& request);

/// Then V becomes (B / kappa)^2 at least, so that the bound alone judges.
void judge_by_bound(const model::ModelRequest& request, std::span<const float> bound, std::span<float> deviation);

/// By how much truncating products of one sign may make the whole of a tracked output too small: sums of so many terms,
/// bounded by their yardsticks `magnitude`.
[[nodiscard]] double truncation_slope(const AttentionProducts& products, std::int64_t terms,
                                      const op::OutputValues& output);

/// By how much rounding may move the score of two FP8 rows with d channels, per |scale| |q| |k|: six standard deviations of
/// its error (more happen once in 10^9 scores) on the architecture with the shortest sums, sm_89.
[[nodiscard]] double fp8_score_swing(std::int64_t d);

/// The same of scores in wider formats, whose sums are FP32: of operands that are not rounded, or rounded to TF32.
[[nodiscard]] double score_swing(std::int64_t d, bool tf32);

}  // namespace numcheck::tolerance
