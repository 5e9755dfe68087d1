// What attention's gradients are where inputs are not finite: which of them every correct kernel gets, and which depend on
// how it computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/attention_tile.hpp"

namespace numcheck::reference {

/// What a correct kernel has for a number.
enum class Fate : std::uint8_t {
  number,    ///< a finite one, and not 0
  small,     ///< a finite one that may be rounded to 0: times infinity it is NaN or infinite
  zero,      ///< exactly 0
  infinite,  ///< with the sign of the reference
  nan,
  unknown,  ///< kernels differ: it may overflow, or be an infinity times something small
};

/// Of sum_c x_c y_c. Unknown if its finite part may overflow in FP32, if an infinity meets a subnormal number, which some
/// flush to zero, and if a number is so large that rounding it to TF32 gives infinity.
[[nodiscard]] Fate fate_of_product(const double* x, const double* y, std::int64_t channels);

/// Of -exp(sink - lse) D, what query i adds to the gradient of its head's sink. Unknown if the sink is infinite, if
/// a product of q and k may overflow, or if the query sees nothing and D is not finite: kernels may leave such a query out.
[[nodiscard]] Fate fate_of_sink(const AttentionGradients& gradients, const GradientHead& head, std::int64_t i);

/// p and the gradients of scores of one query's pairs, whose values PairRow has:
///
///   s    unknown if |q| |k| or a bias may overflow. The slope of a cap is 0 where a score is infinite.
///   p    NaN if s or lse is; 0 if s - lse is -infinity, or so small that FP32 has no such number whatever the error of the
///        score. Unknown if lse is -infinity, since kernels may take such a query for one that sees nothing, or if it is far
///        below s.
///   ds   p (dp - D), dt = slope ds: an infinity times p below 2^-14, or a slope below 2^-10, is unknown,
///        and so is an infinity that is rounded to a format with a scale
///
/// Dropout turns p and dp to 0; what is not finite becomes unknown, since kernels multiply it by 0 or replace it.
class PairFates {
 public:
  /// Of the pairs of a query of a head that has special inputs.
  void find(const AttentionGradients& gradients, const GradientHead& head, const PairRow& pairs);
  [[nodiscard]] std::span<const Fate> weights() const noexcept { return p_; }
  [[nodiscard]] std::span<const Fate> gradients() const noexcept { return ds_; }
  [[nodiscard]] std::span<const Fate> capped_gradients() const noexcept { return dt_; }
  /// The pairs as error models may see them: those whose fate is not that of a number weigh nothing.
  [[nodiscard]] PairRow numbers(const PairRow& pairs, std::span<const Fate> fates);

 private:
  struct Query;
  [[nodiscard]] static Fate score(const Query& query, const PairRow& pairs, std::size_t n);
  [[nodiscard]] static Fate weight(Fate score, const Query& query, const PairRow& pairs, std::size_t n);

  [[nodiscard]] static Fate stored(const AttentionGradients& gradients, Fate x);

  std::vector<Fate> p_, ds_, dt_;
  std::vector<double> products_, scores_, inner_, weights_, gradients_, slopes_, key_norms_, value_norms_;
};

/// Elements of a block of an output, sums of factors times rows.
class SumFates {
 public:
  SumFates(std::int64_t rows, std::int64_t channels);

  /// Adds `factor` times x, a row of inputs, to row `row`.
  void add(std::size_t row, Fate fate, double factor, const double* x);
  /// Adds a number to one element.
  void add(std::size_t row, std::size_t channel, Fate fate);
  /// Of an element whose value in double is `y`: NaN, infinite, unknown, or a number.
  [[nodiscard]] Fate of(std::size_t row, std::size_t channel, double y) const;

 private:
  static constexpr std::uint8_t kNan = 1, kUnknown = 2, kLarge = 4;  ///< large: beside an infinity it may overflow
  [[nodiscard]] std::size_t at(std::size_t row, std::size_t channel) const { return row * channels_ + channel; }

  std::size_t channels_;
  std::vector<std::uint8_t> rows_, elements_;
};

}  // namespace numcheck::reference
