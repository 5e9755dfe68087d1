#include "reference/attention_tile.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "core/cancel.hpp"
#include "reference/attention_kernels.hpp"
#include "reference/product.hpp"

namespace numcheck::reference {
namespace {

HeadRows from(const HeadRows& rows, std::int64_t first) {
  return {rows.data + first * rows.stride, rows.stride};
}

double square(double x) {
  return x * x;
}

double square_if_finite(double x) {
  return std::isfinite(x) ? square(x) : 0;
}

}  // namespace

bool GradientTile::load(const GradientHead& head, const Positions& queries, const Positions& keys, const Visit& visit) {
  core::throw_if_cancelled();
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
  multiply_rows();
  if (visit && gradients_.uneven()) {
    product_of_squares(head.queries, head.keys, p.d, gradients_.problem().factor(), score_seconds_);
    product_of_squares(head.gradient, head.values, p.value_channels(), 1, gradient_seconds_);
  }
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
                       std::span<double> out) {
  add(factor, to_keys, rows, channels, out.data(), channels);
}

void GradientTile::add(std::span<const double> factor, bool to_keys, const SummedRows& rows, std::int64_t channels,
                       double* out, std::int64_t stride) {
  const Positions& summed = to_keys ? queries_ : keys_;
  if (rows.finite.all(summed.begin, summed.end)) {
    PackedFactor<double>& right = !to_keys                           ? summed_keys_
                                  : rows.data == head_->queries.data ? summed_queries_
                                                                     : summed_gradient_;
    right.keep({from(rows, summed.begin).data, rows.stride, false}, summed.size(), channels);
    right.multiply({.left = {factor.data(), keys_.size(), to_keys},
                    .rows = (to_keys ? keys_ : queries_).size(),
                    .out = out,
                    .out_stride = stride,
                    .accumulate = true});
    return;
  }
  for_each_pair(to_keys, [&](std::size_t n, std::int64_t row, std::int64_t sum) {
    for (std::int64_t c = 0; c < channels; ++c) {
      out[sum * stride + c] += factor[n] * from(rows, row).data[c];
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

void GradientTile::add_terms(std::span<const double> terms, bool to_keys, const SummedRows& rows, std::int64_t channels,
                             std::span<double> out) {
  const Positions& summed = to_keys ? queries_ : keys_;
  if (rows.finite.all(summed.begin, summed.end)) {
    square_products_.set_rows(from(rows, summed.begin), summed.size(), channels);
    square_products_.add({terms.data(), keys_.size(), to_keys}, (to_keys ? keys_ : queries_).size(),
                         SquareProducts::Power::first, out);
    return;
  }
  for_each_pair(to_keys, [&](std::size_t n, std::int64_t row, std::int64_t sum) {
    for (std::int64_t c = 0; c < channels; ++c) {
      out[static_cast<std::size_t>(sum * channels + c)] += terms[n] * square_if_finite(from(rows, row).data[c]);
    }
  });
}

void GradientTile::multiply_rows() {
  const op::AttentionParams& p = gradients_.params();
  // One of the two factors is that of the tile before, which is not prepared again.
  const auto multiply = [this](const HeadRows& left, PackedRows& copied, const HeadRows& right,
                               PackedFactor<double>& packed, std::int64_t channels, std::vector<double>& out) {
    copied.keep(from(left, queries_.begin).data, left.stride, queries_.size(), channels);
    packed.keep({from(right, keys_.begin).data, right.stride, true}, channels, keys_.size());
    packed.multiply({.left = copied.factor(), .rows = queries_.size(), .out = out.data(), .out_stride = keys_.size()});
  };
  multiply(head_->queries, queries_left_, head_->keys, keys_right_, p.d, p_);
  multiply(head_->gradient, gradient_left_, head_->values, values_right_, p.value_channels(), ds_);
}

void GradientTile::product_of_squares(const HeadRows& left, const HeadRows& right, std::int64_t channels, double factor,
                                      std::vector<double>& out) const {
  const auto squares = [channels](const HeadRows& rows, const Positions& positions) {
    std::vector<double> all;
    for (std::int64_t i = positions.begin; i < positions.end; ++i) {
      const double* row = from(rows, i).data;
      std::transform(row, row + channels, std::back_inserter(all), square_if_finite);
    }
    return all;
  };
  const std::vector<double> of_queries = squares(left, queries_), of_keys = squares(right, keys_);
  out.resize(static_cast<std::size_t>(queries_.size() * keys_.size()));
  multiply<double>({{of_queries.data(), channels, false},
                    {of_keys.data(), channels, true},
                    queries_.size(),
                    keys_.size(),
                    channels,
                    out.data(),
                    keys_.size()});
  std::ranges::for_each(out, [factor](double& x) { x *= factor * factor; });
}

op::KeyRange GradientTile::seen_by(std::int64_t i) const {
  const op::KeyRange all = gradients_.params().visible(i, head_->lengths.queries, head_->lengths.keys);
  op::KeyRange seen{std::max(all.begin, keys_.begin), std::min(all.end, keys_.end)};
  seen.end = std::max(seen.begin, seen.end);
  return seen;
}

std::span<double> GradientTile::part(std::vector<double>& all, std::int64_t i, const op::KeyRange& keys) const {
  if (all.empty()) {
    return {};
  }
  const std::int64_t begin = (i - queries_.begin) * keys_.size() + keys.begin - keys_.begin;
  return std::span(all).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(keys.size()));
}

void GradientTile::differentiate(std::int64_t i, const Visit& visit) {
  const op::KeyRange seen = seen_by(i);
  if (seen.size() > 0) {
    weigh(i, seen, static_cast<bool>(visit));
    if (drops()) {
      drop(i, seen);
    }
    if (!spread_.empty()) {
      store_spread(i, seen);
    }
    if (visit) {
      show(i, seen, visit);
    }
    const std::span<double> p = part(p_, i, seen), ds = part(ds_, i, seen), dt = part(dt_, i, seen);
    attention_kernels().differentiate(p.data(), p.size(), head_->dot[static_cast<std::size_t>(i)], ds.data());
    if (!reach_.empty()) {
      std::ranges::transform(p, dt, part(reach_, i, seen).begin(), std::multiplies<>());
    }
    if (is_capped()) {
      std::ranges::transform(ds, dt, dt.begin(), std::multiplies<>());
    }
  }
  clear_unseen(i, seen);
}

void GradientTile::weigh(std::int64_t i, const op::KeyRange& seen, bool visited) {
  const AttentionProblem& problem = gradients_.problem();
  const std::span<double> p = part(p_, i, seen);
  if (is_capped()) {
    problem.slopes(head_->index, i, seen, p, part(dt_, i, seen));
  }
  if (visited) {
    products_.assign(p.begin(), p.end());
    std::ranges::for_each(products_, [factor = problem.factor()](double& x) { x *= factor; });
  }
  ScoreRange range = problem.score_inside(head_->index, i, seen, p);
  if (problem.adds_bias_last()) {
    if (visited) {
      inner_.assign(p.begin(), p.end());
    }
    range = problem.add_last_bias(head_->index, head_->lengths, i, seen, p);
  }
  if (visited) {
    scores_.assign(p.begin(), p.end());
  }
  attention_kernels().exponentials(p.data(), p.size(), head_->lse[i], range);
}

void GradientTile::drop(std::int64_t i, const op::KeyRange& seen) {
  const std::span<double> p = part(p_, i, seen), ds = part(ds_, i, seen);
  kept_.assign(p.size(), 1.0);
  gradients_.problem().dropout().multiply(head_->batch, head_->index, i, seen, kept_);
  std::ranges::transform(p, kept_, part(dropped_, i, seen).begin(), std::multiplies<>());
  std::ranges::transform(ds, kept_, ds.begin(), std::multiplies<>());
}

void GradientTile::store_spread(std::int64_t i, const op::KeyRange& seen) {
  const double* norms = head_->errors->values.norms.data() + seen.begin;
  const double second = std::sqrt(head_->errors->gradient_second[static_cast<std::size_t>(i)]);
  const std::span<double> p = part(p_, i, seen), dt = part(dt_, i, seen);
  const std::span<double> spread = part(spread_, i, seen), exact = part(gradient_seconds_, i, seen);
  for (std::size_t n = 0; n < spread.size(); ++n) {
    const double of_pair = exact.empty() ? norms[n] * second : std::sqrt(exact[n]);
    spread[n] = p[n] * kept_[n] * (is_capped() ? dt[n] : 1) * of_pair;
  }
}

void GradientTile::show(std::int64_t i, const op::KeyRange& seen, const Visit& visit) {
  const std::span<double> ds = part(ds_, i, seen);
  shifted_.assign(ds.begin(), ds.end());
  std::ranges::for_each(shifted_, [dot = head_->dot[static_cast<std::size_t>(i)]](double& x) { x -= dot; });
  const auto norms = [&](const RowLengths& rows) {
    return std::span(rows.norms).subspan(static_cast<std::size_t>(seen.begin), ds.size());
  };
  visit({.query = i,
         .keys = seen,
         .products = products_,
         .scores = scores_,
         .inner = gradients_.problem().adds_bias_last() ? inner_ : scores_,
         .weights = part(p_, i, seen),
         .gradients = shifted_,
         .kept = kept_,
         .slopes = part(dt_, i, seen),
         .key_norms = norms(head_->errors->keys),
         .value_norms = norms(head_->errors->values),
         .score_seconds = part(score_seconds_, i, seen),
         .gradient_seconds = part(gradient_seconds_, i, seen)});
}

void GradientTile::clear_unseen(std::int64_t i, const op::KeyRange& seen) {
  const auto width = static_cast<std::size_t>(keys_.size());
  const auto skipped = static_cast<std::size_t>(seen.begin - keys_.begin);
  const auto count = static_cast<std::size_t>(seen.size());
  for (std::vector<double>* all : {&p_, &ds_, &dt_, &reach_, &dropped_, &spread_}) {
    if (!all->empty()) {
      const std::span<double> row =
          std::span(*all).subspan(static_cast<std::size_t>(i - queries_.begin) * width, width);
      std::ranges::fill(row.first(std::min(skipped, width)), 0);
      std::ranges::fill(row.subspan(std::min(skipped + count, width)), 0);
    }
  }
}

}  // namespace numcheck::reference
