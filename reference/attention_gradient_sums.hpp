// Outputs of attention's gradients, block by block, with what their error models need.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "reference/attention_channel_errors.hpp"
#include "reference/attention_gradient_facts.hpp"
#include "reference/attention_gradient_fates.hpp"
#include "reference/attention_tile.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {

/// An output port under construction, with the facts that its error model needs.
struct GradientOutput {
  TrackedOutput out;
  std::vector<core::Buffer<float>> facts;  ///< of rows and elements; empty with only_values
  bool values_only;

  GradientOutput(std::string_view port, std::int64_t rows, std::int64_t elements, bool only_values);
  /// Of queries, keys or values. Elements of a thd tensor between its sequences are left to the implementation.
  GradientOutput(std::string_view port, const AttentionProblem& problem, op::Side side, std::int64_t channels,
                 bool only_values);
  /// One of its rows' facts; empty with only_values.
  [[nodiscard]] std::span<const float> fact(tolerance::GradientFact which) const;
  /// Makes room for such a fact of each element.
  void add_element_fact(std::size_t which);
  [[nodiscard]] op::OutputValues take() &&;
};

/// Sums of a block of an output's rows. Without error models, only `value` is there.
struct GradientSums {
  GradientFacts::Of what;
  const AttentionGradients& all;
  bool scales_fit;  ///< AttentionGradients::scales_fit
  std::int64_t rows, channels;
  std::vector<double> value, weighted, squared;  ///< sum p w x, sum p x^2, sum (p w x)^2
  /// Of keys that heads share: the squares of what each head has added, and the value before the current one.
  std::vector<double> parts, before;
  std::vector<double> dropped;  ///< of tolerance::kDropped; with dropout, but for values
  GradientFacts facts;
  std::optional<SumFates> fates;  ///< once a head has special inputs
  PairFates pair_fates;
  std::optional<ChannelErrors> channel_errors;  ///< of uneven cases, and of dbias

  GradientSums(GradientFacts::Of of, const AttentionGradients& g, std::int64_t row_count, std::int64_t channel_count,
               const StatisticFacts& statistics = {});
  /// Adds a tile's pairs; `factor` is its p w.
  void add(GradientTile& tile, std::span<const double> factor, bool to_keys, const SummedRows& summed);
  /// True for dbias, where each pair has an element.
  [[nodiscard]] bool sums_elements() const {
    return what == GradientFacts::Of::bias || what == GradientFacts::Of::capped_bias;
  }
  /// Before a tile's pairs are added.
  void begin(const Positions& queries, const Positions& keys);
  /// Adds to facts and fates, see GradientFacts::add.
  void add(const GradientHead& head, const PairRow& pairs, std::size_t row);
  void add_special(const GradientHead& head, const PairRow& pairs, std::size_t row);
  /// Of an element whose value is y.
  [[nodiscard]] Fate fate(std::size_t row, std::size_t channel, double y) const;
  /// Ends a head; the next ones add to the same values.
  void end_head();
};

/// Where the rows of a block are in an output.
struct BlockPlace {
  op::HeadPlace elements;
  std::int64_t row = 0;  ///< of the facts, of position 0
  Positions positions;
  std::int64_t channels = 0;
};

/// Sets a block's elements, times `factor`, and its rows' facts.
void store(GradientOutput& to, const BlockPlace& place, const GradientSums& sums, double factor);
/// Sets its elements' fact `which` (tolerance::kMean, kParts, kSaturation) to `values` times `factor`.
void store_elements(GradientOutput& to, std::size_t which, const BlockPlace& place, std::span<const double> values,
                    double factor);

/// The same for the roots of sums of squares; nothing if there are none.
void store_roots(GradientOutput& to, std::size_t which, const BlockPlace& place, std::span<const double> squares,
                 double factor);

/// sum_c (x_c mean_c)^2, with means as sums of weights times numbers.
[[nodiscard]] double common_square(const double* x, std::span<const double> sums, double weight);

}  // namespace numcheck::reference
