#include "tolerance/attention_bwd_slope.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "op/attention_bwd.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_bwd_rounding.hpp"
#include "tolerance/attention_gradient_row.hpp"
#include "tolerance/attention_gradient_shape.hpp"
#include "tolerance/attention_lost.hpp"
#include "tolerance/attention_products.hpp"
#include "tolerance/output_named.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {
namespace {

constexpr double kTruncation = 1.5;  // of what is predicted, as in gate G3
constexpr double kErrors = 5;        // standard deviations, as there

/// What all rows have in common, and what one has.
class RowShifts {
 public:
  RowShifts(const model::ModelRequest& request, const op::OutputValues& judged, const op::AttentionBwdParams& p,
            std::string_view port)
      : judged_(judged),
        stored_(request, p, port, judged),
        unit_(AttentionProducts(request).unit()),
        factor_(std::fabs(p.factor())),
        ordered_(is_any_ordered(request)),
        rounded_alike_(core::dtype_info(request.output).unit_roundoff / 2),
        equal_values_(port == "dv" ? 0 : static_cast<double>(p.value_channels()) * kUnit32) {
    const AttentionProducts products(request);
    const double alike = ordered_ ? 2 * products.tf32_unit() : 0;  // do and v, rounded by the same part
    shrunk_ = port == "dv" ? 0 : kTruncation * std::sqrt(products.sum(p.value_channels()).common) + alike;
  }

  /// M, or u_P where inputs are structured; not finite where scores are not.
  [[nodiscard]] double shift(std::size_t row) const {
    const double of_row = GradientRow(judged_, row)[GradientFact::shift];
    return ordered_ && std::isfinite(of_row) ? std::max(std::fabs(of_row), unit_) : of_row;
  }
  /// Of rows of a single pair.
  [[nodiscard]] double single(std::size_t row) const {
    return GradientRow(judged_, row)[GradientFact::terms] == 1 ? rounded_alike_ : 0;
  }
  /// y K P of an element over y^2, times shrunk().
  [[nodiscard]] double truncated(std::size_t row, std::size_t at) const {
    const double part = shrunk(row);
    const double of_dot = GradientElement(judged_, at).mean * GradientRow(judged_, row)[GradientFact::own_dot];
    return part == 0 || !std::isfinite(of_dot) ? 0 : part * of_dot / judged_.value[at];
  }
  /// Of dp, which D does not have, or D, which dp does not have.
  [[nodiscard]] double shrunk(std::size_t row) const {
    const GradientRow facts(judged_, row);
    return shrunk_ + stored_.alike_changes(facts) + facts[GradientFact::equal_values] * equal_values_;
  }
  /// Of weights, by declared roundings.
  [[nodiscard]] double stored(std::size_t row) const { return stored_.alike_weights(GradientRow(judged_, row)); }
  /// Bound of the length of a row's error where weights or gradients of scores are stored as subnormal numbers, or as 0.
  [[nodiscard]] double lost(std::size_t row) const {
    const GradientRow facts(judged_, row);
    return stored_.lost(facts, factor_) * std::sqrt(facts[GradientFact::terms]) * facts[GradientFact::length];
  }
  /// Of what all rows of a head have in common, by declared roundings of scores.
  [[nodiscard]] double of_head(std::size_t row) const {
    return kErrors * stored_.alike_statistics(GradientRow(judged_, row));
  }

 private:
  const op::OutputValues& judged_;
  GradientRounding stored_;
  double unit_, factor_;
  bool ordered_;
  double rounded_alike_, equal_values_, shrunk_ = 0;
};

}  // namespace

double slope_of_rows(const model::ModelRequest& request, const op::Values& values, std::string_view port) {
  const AttentionProducts products(request);
  if (port == "dbias" || port == "dsoftmax_offset" || products.unit() == 0) {
    return 0;
  }
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  const op::OutputValues& judged = output_named(values, port);
  std::vector<float> bound(judged.value.size()), deviation(judged.value.size());
  attention_bwd_error(request, values, port, bound, deviation);
  const GradientShape shape(p, port);
  const bool has_sign = products.scaled || (port == "dv" && !p.has_dropout());
  const RowShifts shifts(request, judged, p, port);
  double shifted = 0, signal = 0, single = 0, truncated = 0, stored = 0;
  std::vector<double> of_heads(static_cast<std::size_t>(shape.batches * shape.heads));
  LostRows lost;
  for (std::size_t row = 0; row < shape.rows(); ++row) {
    if (!shape.has(row)) {
      continue;
    }
    const double shift = shifts.shift(row);
    const std::size_t first = shape.first_of(row), end = first + static_cast<std::size_t>(shape.channels);
    double of_row_signal = 0;
    for (std::size_t at = first; at < end && std::isfinite(shift); ++at) {
      const double y = judged.value[at], weight = signal_of(y, bound[at], deviation[at], request);
      if (weight == 0) {
        continue;
      }
      of_row_signal += weight;
      shifted += weight * (has_sign ? shift : std::fabs(shift));
      single += weight * shifts.single(row);
      truncated += weight * shifts.truncated(row, at);
    }
    signal += of_row_signal;
    if (of_row_signal > 0) {  // of scores that are infinite nothing is known
      stored += of_row_signal * shifts.stored(row);
      of_heads[row / static_cast<std::size_t>(shape.length)] += of_row_signal * shifts.of_head(row);
    }
    lost.add(of_row_signal, end - first);
  }
  double heads = 0;  // independent of one another
  for (const double one : of_heads) {
    heads += one * one;
  }
  return signal == 0
             ? 0
             : (std::fabs(shifted) + single + std::fabs(truncated) + stored + std::sqrt(heads)) / signal + lost.slope();
}

std::vector<float> row_slopes(const model::ModelRequest& request, const op::Values& values, std::string_view port) {
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  const op::OutputValues& judged = output_named(values, port);
  const GradientShape shape(p, port);
  const RowShifts shifts(request, judged, p, port);
  const auto channels = static_cast<std::size_t>(shape.channels);
  std::vector<float> slopes(judged.value.size() / channels);
  for (std::size_t row = 0; row < shape.rows(); ++row) {
    if (!shape.has(row)) {
      continue;
    }
    double signal = 0, truncated = 0;
    for (std::size_t at = shape.first_of(row); at < shape.first_of(row) + channels; ++at) {
      const double square = judged.value[at] * judged.value[at];
      signal += square;
      truncated += square == 0 ? 0 : square * shifts.truncated(row, at);
    }
    const double alike = signal == 0 ? 0 : std::fabs(truncated) / signal;
    const double lost = signal == 0 ? 0 : std::min(1.0, shifts.lost(row) / std::sqrt(signal));
    slopes[shape.first_of(row) / channels] = static_cast<float>(
        std::fabs(shifts.shift(row)) + shifts.single(row) + alike + lost + shifts.stored(row) + shifts.of_head(row));
  }
  return slopes;
}

double slope_of_truncated_scores(const model::ModelRequest& request, const op::Values& values, std::string_view port) {
  const AttentionProducts products(request);
  if (!products.scaled || port == "dsoftmax_offset") {
    return 0;
  }
  const op::OutputValues& judged = output_named(values, port);
  double squares = 0, rows = 0;
  for (std::size_t index = 0; index < judged.row_facts.front().size(); ++index) {
    const GradientRow facts(judged, index);
    const double mean = facts[GradientFact::score_mean];
    if (facts[GradientFact::terms] > 0 && std::isfinite(mean)) {
      squares += mean * mean;
      ++rows;
    }
  }
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  return rows == 0 ? 0 : std::sqrt(products.sum(p.d).common * squares / rows);
}

}  // namespace numcheck::tolerance
