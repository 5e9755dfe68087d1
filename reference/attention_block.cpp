#include "reference/attention_block.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>

#include "core/cancel.hpp"
#include "reference/attention_kernels.hpp"
#include "reference/product.hpp"
#include "reference/special_rows.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_products.hpp"

namespace numcheck::reference {
namespace {

/// Keys of one step: its scores (512 KiB) and the channels of its keys and values stay in a second-level cache.
constexpr std::int64_t kKeys = 256;

constexpr double kEqual = 0x1p-8;         // relative difference of weights that are the same in BF16
constexpr double kLeastNormal = 0x1p-14;  // of FP16
constexpr double kInfinity = std::numeric_limits<double>::infinity();

op::KeyRange common(const op::KeyRange& a, const op::KeyRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

double square(double x) {
  return x * x;
}

}  // namespace

void AttentionBlock::Sums::shrink(std::size_t i, std::size_t count, double factor) {
  const auto scale = [i, count](std::vector<double>& sums, double by) {
    const std::size_t width = sums.size() / count;
    for (std::size_t n = i * width; n < (i + 1) * width; ++n) {
      sums[n] *= by;
    }
  };
  scale(plain, factor);
  if (factor != 0) {  // otherwise infinity, which stands for none, would become NaN
    scale(least_infinite, factor);
  }
  scale(of_squares, factor);
  scale(squared, factor * factor);
  scale(keys, factor);
}

AttentionBlock::AttentionBlock(const AttentionHead& head, std::int64_t first, std::int64_t count)
    : head_(head),
      p_(head.problem.params()),
      first_(first),
      count_(count),
      width_(p_.value_channels()),
      swing_(head.problem.least_weight() ? tolerance::fp8_score_swing(p_.d) : 0),
      swing_in_fp32_(swing_ != 0 || head.values_only ? 0 : tolerance::score_swing(p_.d, false)),
      swing_in_tf32_(swing_ != 0 || head.values_only ? 0 : tolerance::score_swing(p_.d, true)),
      sums_keys_(!head.values_only && head.problem.has_fp32_tensors()),
      measures_lengths_(!head.values_only && (swing_ != 0 || head.uneven)),
      scores_(static_cast<std::size_t>(count * kKeys)),
      rows_(static_cast<std::size_t>(count)) {
  queries_.keep(head.queries.data + first * head.queries.stride, head.queries.stride, count, p_.d);
  sums_.plain.resize(static_cast<std::size_t>(count * width_));
  if (!head.values_only) {
    sums_.of_squares.resize(sums_.plain.size());
    sums_.squared.resize(sums_.plain.size());
    sums_.least_infinite.assign(sums_.plain.size(), kInfinity);
    sums_.keys.resize(sums_keys_ ? static_cast<std::size_t>(count * p_.d) : 0);
  }
  const double sink = head.problem.sink(head.index);
  for (std::int64_t i = 0; i < count; ++i) {
    Row& row = rows_[static_cast<std::size_t>(i)];
    row.visible = p_.visible(first + i, head.lengths.queries, head.lengths.keys);
    row.largest = sink;
    row.sum = sink == -kInfinity ? 0 : 1;
  }
}

void AttentionBlock::run() {
  op::KeyRange seen{std::numeric_limits<std::int64_t>::max(), 0};
  for (const Row& row : rows_) {
    if (row.visible.size() > 0) {
      seen = {std::min(seen.begin, row.visible.begin), std::max(seen.end, row.visible.end)};
    }
  }
  for (std::int64_t begin = seen.begin; begin < seen.end; begin += kKeys) {
    add({begin, std::min(begin + kKeys, seen.end)});
  }
  const std::optional<double> least = head_.problem.least_weight();
  for (std::int64_t i = 0; i < count_; ++i) {
    Row& row = rows_[static_cast<std::size_t>(i)];
    if (row.largest == -kInfinity && !row.has_nan) {
      row.sum = 0;  // all scores are -infinity; what is exp(-infinity + infinity) here is 0 in some kernels
    }
    row.least = row.sum == 0 ? 0 : least.value_or(kLeastNormal * std::exp(row.largest - lse(i)));
  }
}

double AttentionBlock::lse(std::int64_t i) const {
  const Row& row = rows_[static_cast<std::size_t>(i)];
  return row.sum == 0 ? -kInfinity : row.largest + std::log(row.sum);
}

double AttentionBlock::output(std::int64_t i, std::int64_t channel) const {
  return part(sums_.plain, i, channel);
}

bool AttentionBlock::is_determined(std::int64_t i) const {
  const Row& row = rows_[static_cast<std::size_t>(i)];
  const double* q = head_.queries.data + (first_ + i) * head_.queries.stride;
  const double squares = std::accumulate(q, q + p_.d, 0.0, [](double total, double x) { return total + square(x); });
  const double products = std::max(1.0, std::fabs(head_.problem.factor())) * std::sqrt(squares * head_.largest_square);
  // Times 0, what TF32 rounds to infinity is NaN.
  constexpr double kLargest = kRoundsToInfinity * kRoundsToInfinity;
  const bool finite_in_tf32 = head_.largest_square < kLargest && (squares < kLargest || std::isinf(squares));
  const bool makes_nan = (head_.keys_are_infinite && std::any_of(q, q + p_.d, vanishes_in_tf32)) ||
                         (head_.keys_vanish && std::isinf(squares));
  const bool finite = row.top != -kInfinity && row.reach <= tolerance::kMayOverflow &&
                      !(products > tolerance::kMayOverflow) && finite_in_tf32 && !makes_nan;
  const double sink = head_.problem.sink(head_.index);
  Contenders contenders = row.contenders;
  contenders.add(sink, 0);
  return sink != kInfinity && head_.problem.scales_fit(row.reach) && !contenders.is_close() &&
         (finite || row.visible.size() == 0);
}

bool AttentionBlock::is_nan(std::int64_t i) const {
  const Row& row = rows_[static_cast<std::size_t>(i)];
  return std::isnan(row.sum) && head_.problem.sink(head_.index) != kInfinity;
}

bool AttentionBlock::may_be_nan(std::int64_t i, std::int64_t channel) const {
  constexpr double kLargestSum = 3e38;  // of FP32 numbers that add up to a finite one
  const double least = sums_.least_infinite[static_cast<std::size_t>(i * width_ + channel)];
  const double all = head_.value_sums[static_cast<std::size_t>(channel)] * head_.problem.dropout().scale();
  return least < kLeastNormal || (least < kInfinity && !(all < kLargestSum));
}

bool AttentionBlock::may_overflow(std::int64_t i, std::int64_t channel) const {
  constexpr double kLargestSum = 3e38;
  const double scale = head_.problem.dropout().scale();
  // With p = weight / sum <= sqrt(p), neither a term nor a partial sum exceeds the row's sum times the spread.
  const double term = spread(i, channel) * std::max(1.0, rows_[static_cast<std::size_t>(i)].sum) * scale;
  return std::isfinite(term) && term > kLargestSum;
}

double AttentionBlock::spread(std::int64_t i, std::int64_t channel) const {
  // Kept values are multiplied by the scale, whose square counts: the sums have it once.
  return std::sqrt(head_.problem.dropout().scale() * part(sums_.of_squares, i, channel));
}

double AttentionBlock::squares(std::int64_t i, std::int64_t channel) const {
  const Row& row = rows_[static_cast<std::size_t>(i)];
  const double least = row.least;
  return (row.sum == 0 ? 0 : part(sums_.squared, i, channel) / row.sum) +
         square(least * head_.problem.dropout().scale()) * head_.value_squares[static_cast<std::size_t>(channel)];
}

double AttentionBlock::part(const std::vector<double>& sums, std::int64_t i, std::int64_t channel) const {
  const Row& row = rows_[static_cast<std::size_t>(i)];
  return row.sum == 0 ? 0 : sums[static_cast<std::size_t>(i * width_ + channel)] / row.sum;
}

std::span<double> AttentionBlock::scores_of(std::int64_t i, const op::KeyRange& keys, const op::KeyRange& part) {
  return std::span(scores_).subspan(static_cast<std::size_t>(i * kKeys + part.begin - keys.begin),
                                    static_cast<std::size_t>(part.size()));
}

op::KeyRange AttentionBlock::queries_that_see(const op::KeyRange& keys) const {
  const auto sees = [&keys](const Row& row) { return common(keys, row.visible).size() > 0; };
  const auto begin = std::ranges::find_if(rows_, sees);
  const auto end = std::find_if(rows_.rbegin(), std::make_reverse_iterator(begin), sees).base();
  return {begin - rows_.begin(), end - rows_.begin()};
}

void AttentionBlock::add(const op::KeyRange& keys) {
  core::throw_if_cancelled();
  const op::KeyRange queries = queries_that_see(keys);
  if (queries.size() == 0) {
    return;
  }
  right_.set({head_.keys.data + keys.begin * head_.keys.stride, head_.keys.stride, true}, p_.d, keys.size());
  right_.multiply({.left = queries_.factor(queries.begin),
                   .rows = queries.size(),
                   .out = scores_.data() + queries.begin * kKeys,
                   .out_stride = kKeys});
  if (measures_lengths_) {
    add_lengths(queries, keys);
  }
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    weigh(i, keys);
  }
  if (sums_keys_) {  // for scores, which have no dropout
    add_keys(queries, keys);
  }
  for (std::int64_t i = queries.begin; i < queries.end && !head_.problem.dropout().is_none(); ++i) {
    drop(i, keys);
  }
  if (head_.finite.all(keys.begin, keys.end)) {
    add_values(queries, keys);
  } else {
    add_visible_values(keys);
  }
}

void AttentionBlock::add_lengths(const op::KeyRange& queries, const op::KeyRange& keys) {
  const auto add = [&](std::vector<double>& to, double (*of)(double)) {
    const auto all = [&](const HeadRows& rows, std::int64_t first, std::int64_t count) {
      std::vector<double> out;
      for (std::int64_t n = first; n < first + count; ++n) {
        const double* row = rows.data + n * rows.stride;
        std::transform(row, row + p_.d, std::back_inserter(out), of);
      }
      return out;
    };
    const std::vector<double> of_queries = all(head_.queries, first_ + queries.begin, queries.size());
    const std::vector<double> of_keys = all(head_.keys, keys.begin, keys.size());
    to.resize(scores_.size());
    multiply<double>({{of_queries.data(), p_.d, false},
                      {of_keys.data(), p_.d, true},
                      queries.size(),
                      keys.size(),
                      p_.d,
                      to.data() + queries.begin * kKeys,
                      kKeys});
  };
  add(lengths_, [](double x) { return std::fabs(x); });
  if (swing_ != 0) {
    add(signs_, [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; });
  }
}

void AttentionBlock::add_keys(const op::KeyRange& queries, const op::KeyRange& keys) {
  std::vector<double> finite;  // a weight of 0 times NaN would be NaN
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    const double* row = head_.keys.data + j * head_.keys.stride;
    std::transform(row, row + p_.d, std::back_inserter(finite), [](double x) { return std::isfinite(x) ? x : 0; });
  }
  right_.set({finite.data(), p_.d, false}, keys.size(), p_.d);
  right_.multiply({.left = {scores_.data() + queries.begin * kKeys, kKeys, false},
                   .rows = queries.size(),
                   .out = sums_.keys.data() + queries.begin * p_.d,
                   .out_stride = p_.d,
                   .accumulate = true});
}

void AttentionBlock::add_values(const op::KeyRange& queries, const op::KeyRange& keys) {
  const HeadRows values{head_.values.data + keys.begin * head_.values.stride, head_.values.stride};
  const TileFactor<double> weights{scores_.data() + queries.begin * kKeys, kKeys, false};
  const auto of_queries = [&](std::vector<double>& sums) {
    return std::span(sums).subspan(static_cast<std::size_t>(queries.begin * width_));
  };
  right_.set({values.data, values.stride, false}, keys.size(), width_);
  right_.multiply({.left = weights,
                   .rows = queries.size(),
                   .out = of_queries(sums_.plain).data(),
                   .out_stride = width_,
                   .accumulate = true});
  if (!head_.values_only) {
    using Power = SquareProducts::Power;
    square_products_.set_rows(values, keys.size(), width_);
    square_products_.add(weights, queries.size(), Power::first, of_queries(sums_.of_squares));
    square_products_.add(weights, queries.size(), Power::second, of_queries(sums_.squared));
  }
}

void AttentionBlock::weigh(std::int64_t i, const op::KeyRange& keys) {
  Row& row = rows_[static_cast<std::size_t>(i)];
  const op::KeyRange part = common(keys, row.visible);
  const std::span<double> all = scores_of(i, keys, keys);
  if (part.size() == 0) {
    std::ranges::fill(all, 0);
    return;
  }
  const std::span<double> scores = scores_of(i, keys, part);
  const ScoreRange range = head_.values_only ? head_.problem.score(head_.index, head_.lengths, first_ + i, part, scores)
                                             : score_with_copies(i, part, scores);
  if (range.largest == -kInfinity || p_.max_logit) {  // which passes NaN over
    row.has_nan = row.has_nan || std::ranges::any_of(scores, [](double s) { return std::isnan(s); });
  }
  if (p_.max_logit) {
    note_largest(i, scores, part.begin);
  }
  row.top = std::max(row.top, range.largest);
  const double largest = std::max(row.largest, row.top);
  const double shrink = row.largest == -kInfinity ? 0 : std::exp(row.largest - largest);
  row.largest = largest;
  for (double* sum : {&row.sum, &row.own, &row.keys, &row.excess, &row.excess2, &row.squares, &row.score, &row.score2,
                      &row.inner2, &row.products2, &row.signs}) {
    *sum *= shrink;
  }
  row.power2 *= square(shrink);
  row.rounded1 *= shrink;
  row.rounded2 *= square(shrink);
  row.rounded3 *= square(shrink) * shrink;
  if (shrink != 1) {
    sums_.shrink(static_cast<std::size_t>(i), rows_.size(), shrink);
  }
  const double weight = attention_kernels().exponentials(scores.data(), scores.size(), row.largest, range);
  row.sum += weight;
  row.own += weight;
  if (!head_.values_only) {
    add_facts(i, row, scores, part.begin);
  }
  row.equal = shrink < 1 - kEqual ? 0 : row.equal * shrink;
  std::fill(all.begin(), all.begin() + (part.begin - keys.begin), 0.0);
  std::fill(all.begin() + (part.end - keys.begin), all.end(), 0.0);
}

void AttentionBlock::drop(std::int64_t i, const op::KeyRange& keys) {
  Row& row = rows_[static_cast<std::size_t>(i)];
  const op::KeyRange part = common(keys, row.visible);
  if (part.size() == 0) {
    return;
  }
  const std::span<double> scores = scores_of(i, keys, part);
  // In units of exp(row.largest), which may be the sink.
  const double least = std::exp(row.top - row.largest) * (1 - kEqual);
  row.equal += std::accumulate(scores.begin(), scores.end(), 0.0,
                               [least](double sum, double e) { return e >= least ? sum + e : sum; });
  head_.problem.dropout().multiply(head_.batch, head_.index, first_ + i, part, scores);
}

void AttentionBlock::add_visible_values(const op::KeyRange& keys) {
  for (std::int64_t i = 0; i < count_; ++i) {
    const op::KeyRange part = common(keys, rows_[static_cast<std::size_t>(i)].visible);
    for (std::int64_t j = part.begin; j < part.end; ++j) {
      const double weight = scores_[static_cast<std::size_t>(i * kKeys + j - keys.begin)];
      for (std::int64_t c = 0; c < width_; ++c) {
        const auto at = static_cast<std::size_t>(i * width_ + c);
        const double v = head_.values.data[j * head_.values.stride + c];
        sums_.plain[at] += weight * v;
        if (!head_.values_only) {
          if (std::fabs(v) >= kRoundsToInfinity) {
            sums_.least_infinite[at] = std::min(sums_.least_infinite[at], weight);
          }
          sums_.of_squares[at] += weight * v * v;
          sums_.squared[at] += weight * weight * v * v;
        }
      }
    }
  }
}

}  // namespace numcheck::reference
