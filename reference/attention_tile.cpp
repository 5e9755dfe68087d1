#include "reference/attention_tile.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "reference/product.hpp"

namespace numcheck::reference {
namespace {

bool are_finite(const HeadRows& rows, const Positions& positions, std::int64_t channels) {
  for (std::int64_t i = positions.begin; i < positions.end; ++i) {
    const std::span row(rows.data + i * rows.stride, static_cast<std::size_t>(channels));
    if (!std::ranges::all_of(row, [](double x) { return std::isfinite(x); })) {
      return false;
    }
  }
  return true;
}

}  // namespace

AttentionGradients::AttentionGradients(const op::AttentionParams& p, std::span<const op::Operand> operands)
    : problem_(p, operands),
      gradient_(op::operand_named(operands, "do")),
      output_(op::operand_named(operands, "o")),
      lse_(op::operand_named(operands, "lse")) {}

GradientHead AttentionGradients::head(std::int64_t batch, std::int64_t index) const {
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
                    {}};
  for (std::int64_t i = 0; i < head.lengths.queries; ++i) {
    double sum = 0;
    for (std::int64_t c = 0; c < p.value_channels(); ++c) {
      sum += head.gradient.data[i * head.gradient.stride + c] * head.output.data[i * head.output.stride + c];
    }
    head.dot.push_back(sum);
  }
  return head;
}

GradientTile::GradientTile(const AttentionGradients& gradients, const GradientHead& head, const Positions& queries,
                           const Positions& keys)
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
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    differentiate(i);
  }
}

void GradientTile::add(const std::vector<double>& factor, bool to_keys, const HeadRows& rows, std::int64_t channels,
                       std::span<double> out) const {
  const std::int64_t width = keys_.size();
  const Positions& summed = to_keys ? queries_ : keys_;
  if (are_finite(rows, summed, channels)) {
    std::vector<double> product(out.size());
    multiply<double>({{factor.data(), width, to_keys},
                      {rows.data + summed.begin * rows.stride, rows.stride, false},
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
      const double x = factor[static_cast<std::size_t>((i - queries_.begin) * width + j - keys_.begin)];
      const double* row = rows.data + (to_keys ? i : j) * rows.stride;
      const auto sums =
          out.subspan(static_cast<std::size_t>((to_keys ? j - keys_.begin : i - queries_.begin) * channels));
      for (std::int64_t c = 0; c < channels; ++c) {
        sums[static_cast<std::size_t>(c)] += x * row[c];
      }
    }
  }
}

void GradientTile::product(const HeadRows& left, const HeadRows& right, std::int64_t channels,
                           std::vector<double>& out) const {
  multiply<double>({{left.data + queries_.begin * left.stride, left.stride, false},
                    {right.data + keys_.begin * right.stride, right.stride, true},
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

void GradientTile::differentiate(std::int64_t i) {
  const auto width = static_cast<std::size_t>(keys_.size());
  const std::size_t begin = static_cast<std::size_t>(i - queries_.begin) * width;
  const op::KeyRange seen = seen_by(i);
  const auto skipped = static_cast<std::size_t>(seen.begin - keys_.begin);
  const auto count = static_cast<std::size_t>(seen.size());
  const auto part = [&](std::vector<double>& all) { return std::span(all).subspan(begin + skipped, count); };
  if (count > 0) {
    const std::span<double> p = part(p_), ds = part(ds_), dt = part(dt_);
    gradients_.problem().slopes(head_.index, i, seen, p, dt);
    gradients_.problem().score(head_.index, head_.lengths, i, seen, p);
    for (std::size_t n = 0; n < count; ++n) {
      p[n] = std::exp(p[n] - head_.lse[i]);
      ds[n] = p[n] * (ds[n] - head_.dot[static_cast<std::size_t>(i)]);
      dt[n] *= ds[n];
    }
  }
  for (std::vector<double>* all : {&p_, &ds_, &dt_}) {
    const std::span<double> row = std::span(*all).subspan(begin, width);
    std::ranges::fill(row.first(std::min(skipped, width)), 0);
    std::ranges::fill(row.subspan(std::min(skipped + count, width)), 0);
  }
}

}  // namespace numcheck::reference
