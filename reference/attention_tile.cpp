#include "reference/attention_tile.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "core/parallel.hpp"
#include "reference/attention_kernels.hpp"
#include "reference/product.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

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

AttentionGradients::Rounded rounded_like(std::span<const op::Operand> operands, std::string_view tensor,
                                         std::string_view scale) {
  const core::Dtype format = op::operand_named(operands, tensor).dtype;
  const op::Operand* given = op::find_operand(operands, scale);
  return {.format = format == core::Dtype::fp32 ? core::Dtype::tf32 : format,
          .scale = given == nullptr ? 1 : given->data[0],
          .scaled = given != nullptr};
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
  }
  return head;
}

bool GradientTile::load(const GradientHead& head, const Positions& queries, const Positions& keys, const Visit& visit) {
  head_ = &head;
  queries_ = queries;
  keys_ = keys;
  bool any = false;
  for (std::int64_t i = queries.begin; i < queries.end && !any; ++i) {
    any = seen_by(i).size() > 0;
  }
  if (!any) {
    return false;
  }
  const op::AttentionParams& p = gradients_.params();
  const auto pairs = static_cast<std::size_t>(queries.size() * keys.size());
  p_.resize(pairs);
  ds_.resize(pairs);
  dt_.resize(is_capped() ? pairs : 0);
  reach_.resize(is_capped() && visit ? pairs : 0);
  dropped_.resize(drops() ? pairs : 0);
  spread_.resize(drops() && visit ? pairs : 0);
  product(head.queries, head.keys, p.d, p_);
  product(head.gradient, head.values, p.value_channels(), ds_);
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    differentiate(i, visit);
  }
  return true;
}

template <class Body>
void GradientTile::for_each_pair(bool to_keys, const Body& body) const {
  for (std::int64_t i = queries_.begin; i < queries_.end; ++i) {
    const op::KeyRange seen = seen_by(i);
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      const std::int64_t query = i - queries_.begin, key = j - keys_.begin;
      body(static_cast<std::size_t>(query * keys_.size() + key), to_keys ? i : j, to_keys ? key : query);
    }
  }
}

void GradientTile::add(std::span<const double> factor, bool to_keys, const SummedRows& rows, std::int64_t channels,
                       std::span<double> out) const {
  const Positions& summed = to_keys ? queries_ : keys_;
  if (rows.finite.all(summed.begin, summed.end)) {
    multiply<double>({.left = {factor.data(), keys_.size(), to_keys},
                      .right = {from(rows, summed.begin).data, rows.stride, false},
                      .rows = (to_keys ? keys_ : queries_).size(),
                      .cols = channels,
                      .depth = summed.size(),
                      .out = out.data(),
                      .out_stride = channels,
                      .accumulate = true});
    return;
  }
  for_each_pair(to_keys, [&](std::size_t n, std::int64_t row, std::int64_t sum) {
    for (std::int64_t c = 0; c < channels; ++c) {
      out[static_cast<std::size_t>(sum * channels + c)] += factor[n] * from(rows, row).data[c];
    }
  });
}

void GradientTile::add_squares(std::span<const double> factor, bool to_keys, const SummedRows& rows,
                               std::int64_t channels, std::span<double> weighted, std::span<double> squared) {
  const Positions& summed = to_keys ? queries_ : keys_;
  if (rows.finite.all(summed.begin, summed.end)) {
    const std::int64_t sums = (to_keys ? keys_ : queries_).size();
    square_products_.set_rows(from(rows, summed.begin), summed.size(), channels);
    square_products_.add({p_.data(), keys_.size(), to_keys}, sums, SquareProducts::Power::first, weighted);
    square_products_.add({factor.data(), keys_.size(), to_keys}, sums, SquareProducts::Power::second, squared);
    return;
  }
  for_each_pair(to_keys, [&](std::size_t n, std::int64_t row, std::int64_t sum) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto at = static_cast<std::size_t>(sum * channels + c);
      const double x2 = square(from(rows, row).data[c]);
      weighted[at] += p_[n] * x2;
      squared[at] += square(factor[n]) * x2;
    }
  });
}

void GradientTile::add_squares(std::span<const double> factor, bool to_keys, const SummedRows& rows,
                               std::int64_t channels, std::span<double> squared) {
  const Positions& summed = to_keys ? queries_ : keys_;
  if (rows.finite.all(summed.begin, summed.end)) {
    square_products_.set_rows(from(rows, summed.begin), summed.size(), channels);
    square_products_.add({factor.data(), keys_.size(), to_keys}, (to_keys ? keys_ : queries_).size(),
                         SquareProducts::Power::second, squared);
    return;
  }
  for_each_pair(to_keys, [&](std::size_t n, std::int64_t row, std::int64_t sum) {
    for (std::int64_t c = 0; c < channels; ++c) {
      squared[static_cast<std::size_t>(sum * channels + c)] += square(factor[n] * from(rows, row).data[c]);
    }
  });
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
  const op::KeyRange all = gradients_.params().visible(i, head_->lengths.queries, head_->lengths.keys);
  op::KeyRange seen{std::max(all.begin, keys_.begin), std::min(all.end, keys_.end)};
  seen.end = std::max(seen.begin, seen.end);
  return seen;
}

void GradientTile::differentiate(std::int64_t i, const Visit& visit) {
  const auto width = static_cast<std::size_t>(keys_.size());
  const std::size_t begin = static_cast<std::size_t>(i - queries_.begin) * width;
  const op::KeyRange seen = seen_by(i);
  const auto skipped = static_cast<std::size_t>(seen.begin - keys_.begin);
  const auto count = static_cast<std::size_t>(seen.size());
  const auto part = [&](std::vector<double>& all) {
    return all.empty() ? std::span<double>() : std::span(all).subspan(begin + skipped, count);
  };
  if (count > 0) {
    const AttentionProblem& problem = gradients_.problem();
    const AttentionKernels& kernels = attention_kernels();
    const std::span<double> p = part(p_), ds = part(ds_), dt = part(dt_);
    if (is_capped()) {
      problem.slopes(head_->index, i, seen, p, dt);
    }
    if (visit) {
      products_.assign(p.begin(), p.end());
      std::ranges::for_each(products_, [factor = problem.factor()](double& x) { x *= factor; });
    }
    problem.score_inside(head_->index, i, seen, p);
    if (visit && problem.adds_bias_last()) {
      inner_.assign(p.begin(), p.end());
    }
    problem.add_last_bias(head_->index, head_->lengths, i, seen, p);
    if (visit) {
      scores_.assign(p.begin(), p.end());
    }
    kernels.exponentials(p.data(), count, head_->lse[i]);
    const double dot = head_->dot[static_cast<std::size_t>(i)];
    if (drops()) {
      kept_.assign(count, 1.0);
      problem.dropout().multiply(head_->batch, head_->index, i, seen, kept_);
      std::ranges::transform(p, kept_, part(dropped_).begin(), std::multiplies<>());
      std::ranges::transform(ds, kept_, ds.begin(), std::multiplies<>());
    }
    if (!spread_.empty()) {
      const double* norms = head_->errors->values.norms.data() + seen.begin;
      const double second = std::sqrt(head_->errors->gradient_second[static_cast<std::size_t>(i)]);
      const std::span<double> spread = part(spread_);
      for (std::size_t n = 0; n < count; ++n) {
        spread[n] = p[n] * kept_[n] * (is_capped() ? dt[n] : 1) * norms[n] * second;
      }
    }
    if (visit) {
      shifted_.assign(ds.begin(), ds.end());
      std::ranges::for_each(shifted_, [dot](double& x) { x -= dot; });
      visit({i, seen, products_, scores_, problem.adds_bias_last() ? inner_ : scores_, p, shifted_, kept_, dt});
    }
    kernels.differentiate(p.data(), count, dot, ds.data());
    if (!reach_.empty()) {
      std::ranges::transform(p, dt, part(reach_).begin(), std::multiplies<>());
    }
    if (is_capped()) {
      std::ranges::transform(ds, dt, dt.begin(), std::multiplies<>());
    }
  }
  for (std::vector<double>* all : {&p_, &ds_, &dt_, &reach_, &dropped_, &spread_}) {
    if (!all->empty()) {
      const std::span<double> row = std::span(*all).subspan(begin, width);
      std::ranges::fill(row.first(std::min(skipped, width)), 0);
      std::ranges::fill(row.subspan(std::min(skipped + count, width)), 0);
    }
  }
}

}  // namespace numcheck::reference
