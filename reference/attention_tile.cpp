#include "reference/attention_tile.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/parallel.hpp"
#include "reference/product.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

bool is_finite(const double* row, std::int64_t channels) {
  return std::all_of(row, row + channels, [](double x) { return std::isfinite(x); });
}

bool are_finite(const HeadRows& rows, std::int64_t count, std::int64_t channels) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (!is_finite(rows.data + i * rows.stride, channels)) {
      return false;
    }
  }
  return true;
}

HeadRows from(const HeadRows& rows, std::int64_t first) {
  return {rows.data + first * rows.stride, rows.stride};
}

double square(double x) {
  return x * x;
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
      length += square(q[c]);
      fourth += square(square(q[c]));
    }
    for (std::int64_t c = 0; c < p.value_channels(); ++c) {
      magnitude += std::fabs(given[c] * output[c]);
      squares += square(given[c] * output[c]);
    }
    out.score_second.push_back(out.keys.shared(q));
    out.along.push_back(length == 0 ? 0 : fourth / square(length));
    out.gradient_second.push_back(out.values.shared(given));
    out.dot_magnitude.push_back(magnitude);
    out.dot_second.push_back(squares);
    out.dot_variance.push_back(tolerance::kRoundVariance * width *
                               (squares / 6 + square(head.dot[static_cast<std::size_t>(i)]) / 3));
  }
  return out;
}

}  // namespace

RowLengths::RowLengths(const HeadRows& rows, std::int64_t count, std::int64_t width)
    : shares(static_cast<std::size_t>(width)) {
  double all = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double* row = from(rows, i).data;
    double sum = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      sum += square(row[c]);
    }
    norms.push_back(std::sqrt(sum));
    if (!std::isfinite(sum)) {
      continue;
    }
    all += sum;
    for (std::size_t c = 0; c < shares.size(); ++c) {
      shares[c] += square(row[c]);
    }
  }
  std::ranges::for_each(shares, [all](double& x) { x = all == 0 ? 0 : x / all; });
}

double RowLengths::shared(const double* x) const {
  double sum = 0;
  for (std::size_t c = 0; c < shares.size(); ++c) {
    sum += square(x[c]) * shares[c];
  }
  return sum;
}

AttentionGradients::AttentionGradients(const op::AttentionParams& p, std::span<const op::Operand> operands,
                                       bool values_only)
    : problem_(p, operands),
      values_only_(values_only),
      multiplied_(op::operand_named(operands, "q").dtype),
      gradient_(op::operand_named(operands, "do")),
      output_(op::operand_named(operands, "o")),
      lse_(op::operand_named(operands, "lse")),
      heads_(static_cast<std::size_t>(p.batches * p.heads)) {
  multiplied_ = multiplied_ == core::Dtype::fp32 ? core::Dtype::tf32 : multiplied_;
  core::parallel_for(heads_.size(), [&](std::size_t h) {
    const auto head = static_cast<std::int64_t>(h);
    heads_[h] = prepared(head / p.heads, head % p.heads);
  });
}

GradientHead AttentionGradients::prepared(std::int64_t batch, std::int64_t index) const {
  const op::AttentionParams& p = params();
  const op::HeadPlace place = op::head_place(p, batch, index, p.heads, p.sq, p.value_channels());
  GradientHead head{batch,
                    index,
                    problem_.lengths(batch),
                    problem_.queries(batch, index),
                    problem_.keys(batch, index),
                    problem_.values(batch, index),
                    {gradient_.data + place.first, place.stride},
                    {output_.data + place.first, place.stride},
                    lse_.data + (batch * p.heads + index) * p.sq,
                    {},
                    {}};
  for (std::int64_t i = 0; i < head.lengths.queries; ++i) {
    double sum = 0;
    for (std::int64_t c = 0; c < p.value_channels(); ++c) {
      sum += head.gradient.data[i * head.gradient.stride + c] * head.output.data[i * head.output.stride + c];
    }
    head.dot.push_back(sum);
  }
  if (!values_only_) {
    head.errors = lengths_of(head, p);
  }
  return head;
}

GradientTile::GradientTile(const AttentionGradients& gradients, const GradientHead& head, const Positions& queries,
                           const Positions& keys, const std::function<void(const PairRow&)>& visit)
    : gradients_(gradients),
      head_(head),
      queries_(queries),
      keys_(keys),
      p_(static_cast<std::size_t>(queries.size() * keys.size())),
      ds_(p_.size()),
      dt_(p_.size()) {
  const op::AttentionParams& p = gradients.params();
  product(head.queries, head.keys, p.d, p_);
  product(head.gradient, head.values, p.value_channels(), ds_);
  if (visit && p.softcap != 0) {
    reach_.resize(p_.size());
  }
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    differentiate(i, visit);
  }
}

void GradientTile::add(const std::vector<double>& factor, bool to_keys, const HeadRows& rows, std::int64_t channels,
                       std::span<double> out) const {
  accumulate(factor, to_keys, from(rows, (to_keys ? queries_ : keys_).begin), channels, out);
}

void GradientTile::add_squares(const std::vector<double>& factor, bool to_keys, const HeadRows& rows,
                               std::int64_t channels, std::span<double> weighted, std::span<double> squared) const {
  const Positions& summed = to_keys ? queries_ : keys_;
  std::vector<double> squares(static_cast<std::size_t>(summed.size() * channels));
  for (std::int64_t n = 0; n < summed.size(); ++n) {
    std::transform(from(rows, summed.begin + n).data, from(rows, summed.begin + n).data + channels,
                   squares.begin() + n * channels, square);
  }
  accumulate(p_, to_keys, {squares.data(), channels}, channels, weighted);
  std::vector<double> factors(factor.size());
  std::ranges::transform(factor, factors.begin(), square);
  accumulate(factors, to_keys, {squares.data(), channels}, channels, squared);
}

void GradientTile::accumulate(const std::vector<double>& factor, bool to_keys, const HeadRows& rows,
                              std::int64_t channels, std::span<double> out) const {
  const std::int64_t width = keys_.size();
  const Positions& summed = to_keys ? queries_ : keys_;
  if (are_finite(rows, summed.size(), channels)) {
    std::vector<double> product(out.size());
    multiply<double>({{factor.data(), width, to_keys},
                      {rows.data, rows.stride, false},
                      (to_keys ? keys_ : queries_).size(),
                      channels,
                      summed.size(),
                      product.data(),
                      channels});
    std::ranges::transform(out, product, out.begin(), std::plus<>());
    return;
  }
  for (std::int64_t i = queries_.begin; i < queries_.end; ++i) {
    const op::KeyRange seen = seen_by(i);
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      const std::int64_t query = i - queries_.begin, key = j - keys_.begin;
      const double x = factor[static_cast<std::size_t>(query * width + key)];
      const double* row = from(rows, to_keys ? query : key).data;
      const auto sums = out.subspan(static_cast<std::size_t>((to_keys ? key : query) * channels));
      for (std::int64_t c = 0; c < channels; ++c) {
        sums[static_cast<std::size_t>(c)] += x * row[c];
      }
    }
  }
}

void GradientTile::product(const HeadRows& left, const HeadRows& right, std::int64_t channels,
                           std::vector<double>& out) const {
  multiply<double>({{from(left, queries_.begin).data, left.stride, false},
                    {from(right, keys_.begin).data, right.stride, true},
                    queries_.size(),
                    keys_.size(),
                    channels,
                    out.data(),
                    keys_.size()});
}

op::KeyRange GradientTile::seen_by(std::int64_t i) const {
  const op::KeyRange all = gradients_.params().visible(i, head_.lengths.queries, head_.lengths.keys);
  op::KeyRange seen{std::max(all.begin, keys_.begin), std::min(all.end, keys_.end)};
  seen.end = std::max(seen.begin, seen.end);
  return seen;
}

void GradientTile::differentiate(std::int64_t i, const std::function<void(const PairRow&)>& visit) {
  const auto width = static_cast<std::size_t>(keys_.size());
  const std::size_t begin = static_cast<std::size_t>(i - queries_.begin) * width;
  const op::KeyRange seen = seen_by(i);
  const auto skipped = static_cast<std::size_t>(seen.begin - keys_.begin);
  const auto count = static_cast<std::size_t>(seen.size());
  const auto part = [&](std::vector<double>& all) { return std::span(all).subspan(begin + skipped, count); };
  if (count > 0) {
    const std::span<double> p = part(p_), ds = part(ds_), dt = part(dt_);
    gradients_.problem().slopes(head_.index, i, seen, p, dt);
    std::vector<double> products, scores, slopes;
    if (visit) {
      products.assign(p.begin(), p.end());
      std::ranges::for_each(products, [factor = gradients_.problem().factor()](double& x) { x *= factor; });
      slopes.assign(dt.begin(), dt.end());
    }
    gradients_.problem().score(head_.index, head_.lengths, i, seen, p);
    if (visit) {
      scores.assign(p.begin(), p.end());
    }
    const double dot = head_.dot[static_cast<std::size_t>(i)];
    for (std::size_t n = 0; n < count; ++n) {
      p[n] = std::exp(p[n] - head_.lse[i]);
      ds[n] -= dot;
    }
    if (visit) {
      visit({i, seen, products, scores, p, ds, slopes});
    }
    for (std::size_t n = 0; n < count; ++n) {
      ds[n] *= p[n];
      dt[n] *= ds[n];
    }
    if (!reach_.empty()) {
      std::ranges::transform(slopes, p, part(reach_).begin(), std::multiplies<>());
    }
  }
  for (std::vector<double>* all : {&p_, &ds_, &dt_}) {
    const std::span<double> row = std::span(*all).subspan(begin, width);
    std::ranges::fill(row.first(std::min(skipped, width)), 0);
    std::ranges::fill(row.subspan(std::min(skipped + count, width)), 0);
  }
}

}  // namespace numcheck::reference
