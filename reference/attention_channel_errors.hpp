// What single channels change about the error of a row's elements, where some are far larger than others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/attention_gradient_facts.hpp"
#include "reference/attention_tile.hpp"

namespace numcheck::reference {

/// The error model has one mean of z, the variance of a weight's error, for all channels of a row, and one of f, that of
/// dp - D. Exactly, those of channel c are sum (p w x_c)^2 z / sum (p w x_c)^2 and sum (p slope x_c)^2 f / sum p x_c^2. As
/// ratios to the row's means, the largest of those of the parts of z (score_second, score_square, argument_square) and of
/// f (gradient_second, gradient_square, dot_variance), these are tolerance::kWeightRatio and kSpreadRatio. kLengthRatio is
/// sum x_c^2 over the mean of all channels.
class ChannelErrors {
 public:
  ChannelErrors(std::int64_t rows, std::int64_t channels);

  /// Starts a tile.
  void begin(const Positions& queries, const Positions& keys);
  /// Takes the terms of the pairs that the facts have found last.
  void take(const PairRow& pairs, const GradientFacts& facts);
  /// The same where every pair has an element of its own, in row `row`; without tiles.
  void take_elements(const PairRow& pairs, const GradientFacts& facts, std::size_t row);
  /// Ends the tile, which adds to its queries or, with `to_keys`, to its keys.
  void end(GradientTile& tile, bool to_keys, const SummedRows& rows, std::int64_t channels);

  [[nodiscard]] double weight_ratio(const GradientFacts& facts, std::size_t row, std::size_t channel) const;
  [[nodiscard]] double spread_ratio(const GradientFacts& facts, std::size_t row, std::size_t channel) const;
  [[nodiscard]] double length_ratio(const GradientFacts& facts, std::size_t row, std::size_t channel) const;

 private:
  static constexpr std::size_t kParts = 3;
  static constexpr std::size_t kOfSpread = kParts + 1, kOfLength = 2 * (kParts + 1);
  static constexpr std::array<PairTerm, kOfLength + 1> kErrorTerms = {kSquare,         kScoreSecond, kScoreSquare,
                                                                      kArgumentSquare, kShare,       kGradientSecond,
                                                                      kGradientSquare, kDotVariance, kTerms};
  [[nodiscard]] double largest(std::size_t first, const GradientFacts& facts, std::size_t row,
                               std::size_t channel) const;

  std::size_t channels_;
  Positions queries_, keys_;
  std::array<std::vector<double>, kErrorTerms.size()> terms_, sums_;
};

}  // namespace numcheck::reference
