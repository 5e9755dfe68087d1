#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "reference/attention_tile.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

HeadRows from(const HeadRows& rows, std::int64_t first) {
  return {rows.data + first * rows.stride, rows.stride};
}

double square(double x) {
  return x * x;
}

double if_finite(double x) {
  return std::isfinite(x) ? x : 0;
}

/// The largest sum of squares that `count` sums of n normal numbers rarely exceed, in units of their mean: 1 + 2 sqrt(l / n)
/// + 2 l / n with a probability of e^-l each (Laurent and Massart, Annals of Statistics 28, 2000).
double longest(double n, double count) {
  const double l = std::log(1e6 * count);
  return 1 + 2 * std::sqrt(l / n) + 2 * l / n;
}

/// True if a row or a column is longer than rows of normal numbers are, and where there are too few numbers to tell.
bool are_uneven(std::span<const double> row_squares, std::span<const double> column_squares) {
  constexpr double kFewest = 4096;
  const auto rows = static_cast<double>(row_squares.size()), columns = static_cast<double>(column_squares.size());
  const double all = std::accumulate(row_squares.begin(), row_squares.end(), 0.0);
  const auto largest = [](std::span<const double> sums) { return sums.empty() ? 0 : *std::ranges::max_element(sums); };
  return rows * columns < kFewest || largest(row_squares) * rows > longest(columns, rows) * all ||
         largest(column_squares) * columns > longest(rows, columns) * all;
}

/// Of `count` rows from their mean, relative to their root mean square.
double relative_deviation(const HeadRows& rows, std::int64_t count, std::int64_t width) {
  std::vector<double> mean(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < mean.size(); ++c) {
      mean[c] += if_finite(from(rows, i).data[c]) / static_cast<double>(count);
    }
  }
  double deviations = 0, squares = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const double x = if_finite(from(rows, i).data[c]);
      deviations += square(x - mean[c]);
      squares += square(x);
    }
  }
  return squares == 0 ? 0 : std::sqrt(deviations / squares);
}

GradientLengths lengths_of(const GradientHead& head, const op::AttentionParams& p) {
  const auto width = static_cast<double>(p.value_channels());
  GradientLengths out{{head.queries, head.lengths.queries, p.d},
                      {head.keys, head.lengths.keys, p.d},
                      {head.values, head.lengths.keys, p.value_channels()},
                      {head.gradient, head.lengths.queries, p.value_channels()},
                      {},
                      {},
                      {},
                      {},
                      {},
                      {}};
  for (std::int64_t i = 0; i < head.lengths.queries; ++i) {
    const double* q = from(head.queries, i).data;
    const double* given = from(head.gradient, i).data;
    const double* output = from(head.output, i).data;
    double fourth = 0, length = 0, magnitude = 0, squares = 0;
    for (std::int64_t c = 0; c < p.d; ++c) {
      const double square_of_q = square(if_finite(q[c]));
      length += square_of_q;
      fourth += square(square_of_q);
    }
    for (std::int64_t c = 0; c < p.value_channels(); ++c) {
      const double product = if_finite(given[c] * output[c]);
      magnitude += std::fabs(product);
      squares += square(product);
    }
    out.score_second.push_back(out.keys.shared(q));
    out.along.push_back(length == 0 ? 0 : fourth / square(length));
    out.gradient_second.push_back(out.values.shared(given));
    out.dot_magnitude.push_back(magnitude);
    out.dot_second.push_back(squares);
    out.dot_variance.push_back(tolerance::kRoundVariance * width *
                               (squares / 6 + square(if_finite(head.dot[static_cast<std::size_t>(i)])) / 3));
  }
  out.gradient_deviation = relative_deviation(head.gradient, head.lengths.queries, p.value_channels());
  return out;
}

AttentionGradients::Rounded rounded_like(std::span<const op::Operand> operands, std::string_view tensor,
                                         std::string_view scale) {
  const core::Dtype format = op::operand_named(operands, tensor).dtype;
  const op::Operand* given = op::find_operand(operands, scale);
  return {.format = format == core::Dtype::fp32 ? core::Dtype::tf32 : format,
          .scale = given == nullptr ? 1 : given->data[0],
          .scaled = given != nullptr};
}

/// Whether products of numbers up to `largest` and factors are normal FP32 numbers, whatever their order.
bool fit(double largest, std::initializer_list<double> factors) {
  constexpr double kLargest = 1e37, kLeastNormal = 0x1p-126;
  double least = 1;
  for (const double factor : factors) {
    largest *= std::max(1.0, std::fabs(factor));
    least *= std::min(1.0, std::fabs(factor));
  }
  return largest <= kLargest && least >= kLeastNormal;
}

}  // namespace

RowLengths::RowLengths(const HeadRows& rows, std::int64_t count, std::int64_t width)
    : shares(static_cast<std::size_t>(width)) {
  std::vector<double> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    const double* row = from(rows, i).data;
    double sum = 0;
    for (std::size_t c = 0; c < shares.size(); ++c) {
      const double square_of_x = square(if_finite(row[c]));
      sum += square_of_x;
      shares[c] += square_of_x;
    }
    norms.push_back(std::sqrt(sum));
    lengths.push_back(sum);
  }
  uneven = are_uneven(lengths, shares);
  const double all = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  std::ranges::for_each(shares, [all](double& x) { x = all == 0 ? 0 : x / all; });
}

double RowLengths::shared(const double* x) const {
  double sum = 0;
  for (std::size_t c = 0; c < shares.size(); ++c) {
    sum += square(if_finite(x[c])) * shares[c];
  }
  return sum;
}

bool AttentionGradients::scales_fit() const {
  if (!changes_.scaled) {
    return true;
  }
  const op::AttentionParams& p = params();
  const double code = core::dtype_info(weights_.format).max_finite,
               change = core::dtype_info(changes_.format).max_finite;
  const auto summed = static_cast<double>(std::max({p.value_channels(), p.sk, p.sq * (p.heads / p.key_heads())}));
  const double largest = code * change * summed, factor = problem_.factor(), stored = 1 / changes_.scale;
  return problem_.scales_fit(std::numeric_limits<double>::infinity()) &&
         fit(largest, {gradient_.scale, problem_.value_scale()}) && fit(largest, {gradient_.scale, output_.scale}) &&
         fit(largest, {gradient_.scale, 1 / weights_.scale}) && fit(largest, {stored, factor, problem_.key_scale()}) &&
         fit(largest, {stored, factor, problem_.query_scale()});
}

AttentionGradients::AttentionGradients(const op::AttentionParams& p, std::span<const op::Operand> operands,
                                       bool values_only)
    : problem_(p, operands),
      values_only_(values_only),
      weights_(rounded_like(operands, "q", "s_scale")),
      changes_(rounded_like(operands, "do", "dp_scale")),
      gradient_(op::operand_named(operands, "do")),
      output_(op::operand_named(operands, "o")),
      lse_(op::operand_named(operands, "lse")),
      heads_(static_cast<std::size_t>(p.batches * p.heads)) {
  core::parallel_for(heads_.size(), [&](std::size_t h) {
    const auto head = static_cast<std::int64_t>(h);
    heads_[h] = prepared(head / p.heads, head % p.heads);
  });
  uneven_ = std::ranges::any_of(heads_, &GradientHead::uneven);
  if (std::ranges::any_of(heads_, [](const GradientHead& head) { return head.special.has_value(); })) {
    for (GradientHead& head : heads_) {
      head.special = special_of(head);  // sums over heads and sequences have one fate
    }
  }
}

GradientHead AttentionGradients::prepared(std::int64_t batch, std::int64_t index) const {
  const op::AttentionParams& p = params();
  const op::HeadPlace place = op::head_place(p, op::Side::queries, batch, index, p.value_channels());
  const Lengths lengths = problem_.lengths(batch);
  GradientHead head{batch,
                    index,
                    lengths,
                    {problem_.queries(batch, index), lengths.queries, p.d},
                    {problem_.keys(batch, index), lengths.keys, p.d},
                    {{gradient_.data + place.first, place.stride}, lengths.queries, p.value_channels()},
                    problem_.values(batch, index),
                    {output_.data + place.first, place.stride},
                    {},
                    {},
                    {},
                    false,
                    {}};
  const op::HeadPlace statistic = op::statistic_place(p, batch, index);
  for (std::int64_t i = 0; i < head.lengths.queries; ++i) {
    head.lse.push_back(lse_.data[statistic.first + i * statistic.stride]);
    double sum = 0;
    for (std::int64_t c = 0; c < p.value_channels(); ++c) {
      sum += head.gradient.data[i * head.gradient.stride + c] * head.output.data[i * head.output.stride + c];
    }
    head.dot.push_back(sum);
  }
  if (!values_only_) {
    head.errors = lengths_of(head, p);
    head.uneven = head.errors->queries.uneven || head.errors->keys.uneven || head.errors->values.uneven ||
                  head.errors->gradient.uneven;
    SpecialRows special = special_of(head);
    if (special.any()) {
      head.special = std::move(special);
    }
  }
  return head;
}

SpecialRows AttentionGradients::special_of(const GradientHead& head) const {
  const op::AttentionParams& p = params();
  const Lengths& lengths = head.lengths;
  bool special_lse = false;
  for (std::int64_t i = 0; i < lengths.queries; ++i) {
    // A query that sees nothing has -infinity, and takes part in nothing.
    const bool sees = p.visible(i, lengths.queries, lengths.keys).size() > 0;
    special_lse = special_lse || (sees && is_special(head.lse[static_cast<std::size_t>(i)]));
  }
  return {.queries = special_rows(head.queries, lengths.queries, p.d),
          .keys = special_rows(head.keys, lengths.keys, p.d),
          .values = special_rows(head.values, lengths.keys, p.value_channels()),
          .gradient = special_rows(head.gradient, lengths.queries, p.value_channels()),
          .output = special_rows(head.output, lengths.queries, p.value_channels()),
          .others = special_lse || problem_.has_special_scores(head.index, lengths)};
}

}  // namespace numcheck::reference
