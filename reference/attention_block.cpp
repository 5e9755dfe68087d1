#include "reference/attention_block.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "reference/product.hpp"

namespace numcheck::reference {
namespace {

/// Keys of one step: its scores (256 KiB) and the channels of its keys and values stay in a second-level cache.
constexpr std::int64_t kKeys = 512;

using tolerance::AttentionFact;

constexpr double kLeastNormal = 0x1p-14;  // of FP16
constexpr double kInfinity = std::numeric_limits<double>::infinity();

op::KeyRange common(const op::KeyRange& a, const op::KeyRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

double square(double x) {
  return x * x;
}

}  // namespace

AttentionHead::AttentionHead(const AttentionProblem& p, std::int64_t in_batch, std::int64_t head, bool only_values)
    : problem(p),
      batch(in_batch),
      index(head),
      lengths(p.lengths(in_batch)),
      queries(p.queries(in_batch, head)),
      keys(p.keys(in_batch, head)),
      values(p.values(in_batch, head)),
      values_only(only_values) {
  const auto width = static_cast<std::size_t>(p.params().value_channels());
  value_squares.resize(width);
  for (std::int64_t j = 0; j < lengths.keys; ++j) {
    const std::span value(values.data + j * values.stride, width);
    finite.push_back(std::ranges::all_of(value, [](double x) { return std::isfinite(x); }));
    for (std::size_t c = 0; c < width && finite.back() && !values_only; ++c) {
      value_squares[c] += square(value[c]);
    }
  }
  if (!values_only) {
    square_keys();
  }
}

void AttentionHead::square_keys() {
  const auto d = static_cast<std::size_t>(problem.params().d);
  channel_squares.resize(d);
  std::int64_t finite_keys = 0;
  for (std::int64_t j = 0; j < lengths.keys; ++j) {
    const double* key = keys.data + j * keys.stride;
    const double sum = std::accumulate(key, key + d, 0.0, [](double total, double x) { return total + square(x); });
    key_squares.push_back(sum);
    if (!std::isfinite(sum)) {
      continue;  // perhaps no query sees it
    }
    ++finite_keys;
    largest_square = std::max(largest_square, sum);
    for (std::size_t c = 0; c < d; ++c) {
      channel_squares[c] += square(key[c]);
    }
  }
  std::ranges::for_each(channel_squares,
                        [count = std::max(1.0, static_cast<double>(finite_keys))](double& x) { x /= count; });
  mean_square = std::accumulate(channel_squares.begin(), channel_squares.end(), 0.0);
}

void AttentionBlock::Sums::shrink(std::size_t begin, std::size_t width, double factor) {
  const auto scale = [begin, width](std::vector<double>& sums, double by) {
    for (std::size_t n = begin; n < begin + width && !sums.empty(); ++n) {
      sums[n] *= by;
    }
  };
  scale(plain, factor);
  if (factor != 0) {  // otherwise infinity, which stands for none, would become NaN
    scale(least_infinite, factor);
  }
  scale(of_squares, factor);
  scale(squared, factor * factor);
}

AttentionBlock::AttentionBlock(const AttentionHead& head, std::int64_t first, std::int64_t count)
    : head_(head),
      p_(head.problem.params()),
      first_(first),
      count_(count),
      width_(p_.value_channels()),
      scores_(static_cast<std::size_t>(count * kKeys)),
      product_(static_cast<std::size_t>(count * width_)),
      rows_(static_cast<std::size_t>(count)) {
  sums_.plain.resize(product_.size());
  if (!head.values_only) {
    sums_.of_squares.resize(product_.size());
    sums_.squared.resize(product_.size());
    sums_.least_infinite.assign(product_.size(), kInfinity);
    squares_.resize(static_cast<std::size_t>(kKeys * width_));
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
  for (std::int64_t i = 0; i < count_; ++i) {
    Row& row = rows_[static_cast<std::size_t>(i)];
    row.least = row.sum == 0 ? 0 : kLeastNormal * std::exp(row.largest - lse(i));
  }
}

double AttentionBlock::lse(std::int64_t i) const {
  const Row& row = rows_[static_cast<std::size_t>(i)];
  return row.sum == 0 ? -kInfinity : row.largest + std::log(row.sum);
}

double AttentionBlock::output(std::int64_t i, std::int64_t channel) const {
  return part(sums_.plain, i, channel, 1);
}

bool AttentionBlock::is_determined(std::int64_t i) const {
  constexpr double kMayOverflow = 1e37;
  const Row& row = rows_[static_cast<std::size_t>(i)];
  const double* q = head_.queries.data + (first_ + i) * head_.queries.stride;
  const double squares = std::accumulate(q, q + p_.d, 0.0, [](double total, double x) { return total + square(x); });
  const double products = std::max(1.0, std::fabs(head_.problem.factor())) * std::sqrt(squares * head_.largest_square);
  return row.visible.size() == 0 || (row.top != -kInfinity && row.reach <= kMayOverflow && !(products > kMayOverflow));
}

bool AttentionBlock::may_be_nan(std::int64_t i, std::int64_t channel) const {
  return sums_.least_infinite[static_cast<std::size_t>(i * width_ + channel)] < kLeastNormal;
}

double AttentionBlock::spread(std::int64_t i, std::int64_t channel) const {
  return std::sqrt(part(sums_.of_squares, i, channel, 1));
}

double AttentionBlock::squares(std::int64_t i, std::int64_t channel) const {
  const double least = rows_[static_cast<std::size_t>(i)].least;
  return part(sums_.squared, i, channel, 2) + least * least * head_.value_squares[static_cast<std::size_t>(channel)];
}

double AttentionBlock::part(const std::vector<double>& sums, std::int64_t i, std::int64_t channel, int power) const {
  const Row& row = rows_[static_cast<std::size_t>(i)];
  return row.sum == 0 ? 0 : sums[static_cast<std::size_t>(i * width_ + channel)] / std::pow(row.sum, power);
}

std::span<double> AttentionBlock::scores_of(std::int64_t i, const op::KeyRange& keys, const op::KeyRange& part) {
  return std::span(scores_).subspan(static_cast<std::size_t>(i * kKeys + part.begin - keys.begin),
                                    static_cast<std::size_t>(part.size()));
}

void AttentionBlock::add(const op::KeyRange& keys) {
  multiply<double>({{head_.queries.data + first_ * head_.queries.stride, head_.queries.stride, false},
                    {head_.keys.data + keys.begin * head_.keys.stride, head_.keys.stride, true},
                    count_,
                    keys.size(),
                    p_.d,
                    scores_.data(),
                    kKeys});
  for (std::int64_t i = 0; i < count_; ++i) {
    weigh(i, keys);
  }
  const HeadRows values{head_.values.data + keys.begin * head_.values.stride, head_.values.stride};
  if (std::find(head_.finite.begin() + keys.begin, head_.finite.begin() + keys.end, false) !=
      head_.finite.begin() + keys.end) {
    add_visible_values(keys);
    return;
  }
  add_product(values, keys.size(), sums_.plain);
  if (!head_.values_only) {
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      for (std::int64_t c = 0; c < width_; ++c) {
        squares_[static_cast<std::size_t>(j * width_ + c)] = square(values.data[j * values.stride + c]);
      }
    }
    add_product({squares_.data(), width_}, keys.size(), sums_.of_squares);
    std::ranges::transform(scores_, scores_.begin(), square);
    add_product({squares_.data(), width_}, keys.size(), sums_.squared);
  }
}

void AttentionBlock::add_product(const HeadRows& values, std::int64_t keys, std::vector<double>& sums) {
  multiply<double>({{scores_.data(), kKeys, false},
                    {values.data, values.stride, false},
                    count_,
                    width_,
                    keys,
                    product_.data(),
                    width_});
  std::ranges::transform(sums, product_, sums.begin(), std::plus<>());
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
  if (p_.bias != "none" && !head_.values_only) {
    unbiased_.assign(scores.begin(), scores.end());
  }
  head_.problem.score(head_.index, head_.lengths, first_ + i, part, scores);
  row.top = std::max(row.top, *std::ranges::max_element(scores));
  const double largest = std::max(row.largest, row.top);
  const double shrink = row.largest == -kInfinity ? 0 : std::exp(row.largest - largest);
  row.largest = largest;
  for (double* sum :
       {&row.sum, &row.own, &row.keys, &row.excess, &row.excess2, &row.squares, &row.score, &row.score2, &row.inner2}) {
    *sum *= shrink;
  }
  row.power2 *= square(shrink);
  row.rounded1 *= shrink;
  row.rounded2 *= square(shrink);
  row.rounded3 *= square(shrink) * shrink;
  if (shrink != 1) {
    sums_.shrink(static_cast<std::size_t>(i * width_), static_cast<std::size_t>(width_), shrink);
  }
  head_.values_only ? exponentiate(row, scores) : exponentiate_with_facts(row, scores, part.begin);
  std::fill(all.begin(), all.begin() + (part.begin - keys.begin), 0.0);
  std::fill(all.begin() + (part.end - keys.begin), all.end(), 0.0);
}

void AttentionBlock::exponentiate(Row& row, std::span<double> scores) {
  for (double& score : scores) {
    score = std::exp(score - row.largest);
    row.sum += score;
  }
}

void AttentionBlock::exponentiate_with_facts(Row& row, std::span<double> scores, std::int64_t first_key) const {
  const double factor = head_.problem.factor();
  const bool biased_last = p_.bias == "post_scale" || p_.bias == "alibi";
  for (std::size_t n = 0; n < scores.size(); ++n) {
    const double score = scores[n];
    const double scaled = unbiased_.empty() ? score : factor * unbiased_[n];
    const double magnitude = p_.softcap == 0 ? std::fabs(scaled) : std::min(std::fabs(scaled), p_.softcap);
    const double excess = std::max(magnitude, std::fabs(score)) - score;
    const double e = std::exp(score - row.largest);
    scores[n] = e;
    row.sum += e;
    row.own += e;
    row.keys += e * head_.key_squares[static_cast<std::size_t>(first_key) + n];
    row.excess += e * excess;
    row.excess2 += e * excess * excess;
    row.reach = std::isfinite(score) ? std::max({row.reach, magnitude, std::fabs(score)}) : row.reach;
    row.squares += e * square(scaled);
    if (e > 0) {  // otherwise the score may be infinite
      const double capped = p_.softcap == 0 ? scaled : p_.softcap * std::tanh(scaled / p_.softcap);
      row.score += e * score;
      row.score2 += e * square(score);
      row.inner2 += e * square(biased_last ? capped : score);
      const double rounded = square(std::max(std::fabs(scaled), std::fabs(score)));
      row.power2 += e * e;
      row.rounded1 += e * rounded;
      row.rounded2 += e * e * rounded;
      row.rounded3 += e * e * e * rounded;
    }
  }
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
          if (std::isinf(v)) {
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
