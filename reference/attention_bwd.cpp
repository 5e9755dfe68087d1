#include "op/attention_bwd.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "op/attention_fwd.hpp"
#include "reference/attention_problem.hpp"
#include "reference/product.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

/// Queries and keys of one tile.
constexpr std::int64_t kTile = 128;

struct Span {
  std::int64_t begin, end;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

void multiply(const TileProduct<double>& product) {
  if (blas_is_usable()) {
    multiply_by_blas(product);
  } else {
    multiply_by_eigen(product);
  }
}

/// One head of one sequence.
struct Head {
  std::int64_t batch, index;
  Lengths lengths;
  HeadRows queries, keys, values, gradient, output;
  const double* lse;
  std::vector<double> dot;  ///< D of each query
};

/// The case: operands, and sums of a head that all tiles need.
class Gradients {
 public:
  Gradients(const op::AttentionParams& p, std::span<const op::Operand> operands)
      : problem_(p, operands),
        p_(problem_.params()),
        gradient_(op::operand_named(operands, "do")),
        output_(op::operand_named(operands, "o")),
        lse_(op::operand_named(operands, "lse")) {}

  [[nodiscard]] const AttentionProblem& problem() const { return problem_; }
  [[nodiscard]] const op::AttentionParams& params() const { return p_; }

  [[nodiscard]] Head head(std::int64_t batch, std::int64_t index) const {
    const op::HeadPlace place = op::head_place(p_, batch, index, p_.heads, p_.sq, p_.value_channels());
    Head head{batch,
              index,
              problem_.lengths(batch),
              problem_.queries(batch, index),
              problem_.keys(batch, index),
              problem_.values(batch, index),
              {gradient_.data + place.first, place.stride},
              {output_.data + place.first, place.stride},
              lse_.data + (batch * p_.heads + index) * p_.sq,
              {}};
    for (std::int64_t i = 0; i < head.lengths.queries; ++i) {
      double sum = 0;
      for (std::int64_t c = 0; c < p_.value_channels(); ++c) {
        sum += head.gradient.data[i * head.gradient.stride + c] * head.output.data[i * head.output.stride + c];
      }
      head.dot.push_back(sum);
    }
    return head;
  }

 private:
  AttentionProblem problem_;
  const op::AttentionParams& p_;
  const op::Operand& gradient_;
  const op::Operand& output_;
  const op::Operand& lse_;
};

/// Weights and gradients of the scores of some queries and keys; zero where a query does not see a key.
class Tile {
 public:
  Tile(const Gradients& gradients, const Head& head, const Span& queries, const Span& keys)
      : gradients_(gradients),
        head_(head),
        queries_(queries),
        keys_(keys),
        weights_(static_cast<std::size_t>(queries.size() * keys.size())),
        scores_(weights_.size()),
        products_(weights_.size()) {
    const op::AttentionParams& p = gradients.params();
    product(head.queries, head.keys, p.d, weights_);
    product(head.gradient, head.values, p.value_channels(), scores_);
    for (std::int64_t i = queries.begin; i < queries.end; ++i) {
      differentiate(i);
    }
  }

  /// p, ds and dt, queries x keys.
  [[nodiscard]] const std::vector<double>& weights() const { return weights_; }
  [[nodiscard]] const std::vector<double>& scores() const { return scores_; }
  [[nodiscard]] const std::vector<double>& products() const { return products_; }

  /// out[i] += sum_j factor[i, j] rows[j] over the keys of the tile, or with `to_keys` out[j] += sum_i factor[i, j] rows[i].
  /// Only pairs that see each other count: rows may hold what is not finite.
  void add(const std::vector<double>& factor, bool to_keys, const HeadRows& rows, std::int64_t channels,
           std::span<double> out) const {
    const std::int64_t width = keys_.size();
    const Span& summed = to_keys ? queries_ : keys_;
    if (are_finite(rows, summed, channels)) {
      std::vector<double> product(out.size());
      multiply({{factor.data(), width, to_keys},
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

 private:
  static bool are_finite(const HeadRows& rows, const Span& span, std::int64_t channels) {
    for (std::int64_t i = span.begin; i < span.end; ++i) {
      const std::span row(rows.data + i * rows.stride, static_cast<std::size_t>(channels));
      if (!std::ranges::all_of(row, [](double x) { return std::isfinite(x); })) {
        return false;
      }
    }
    return true;
  }

  void product(const HeadRows& left, const HeadRows& right, std::int64_t channels, std::vector<double>& out) const {
    multiply({{left.data + queries_.begin * left.stride, left.stride, false},
              {right.data + keys_.begin * right.stride, right.stride, true},
              queries_.size(),
              keys_.size(),
              channels,
              out.data(),
              keys_.size()});
  }

  [[nodiscard]] op::KeyRange seen_by(std::int64_t i) const {
    const op::KeyRange all = gradients_.params().visible(i, head_.lengths.queries, head_.lengths.keys);
    op::KeyRange seen{std::max(all.begin, keys_.begin), std::min(all.end, keys_.end)};
    seen.end = std::max(seen.begin, seen.end);
    return seen;
  }

  /// Turns row i of the two products into p, ds and dt.
  void differentiate(std::int64_t i) {
    const auto width = static_cast<std::size_t>(keys_.size());
    const std::size_t begin = static_cast<std::size_t>(i - queries_.begin) * width;
    const op::KeyRange seen = seen_by(i);
    const auto skipped = static_cast<std::size_t>(seen.begin - keys_.begin);
    const auto count = static_cast<std::size_t>(seen.size());
    const auto part = [&](std::vector<double>& all) { return std::span(all).subspan(begin + skipped, count); };
    if (count > 0) {
      const std::span<double> p = part(weights_), ds = part(scores_), dt = part(products_);
      gradients_.problem().slopes(head_.index, i, seen, p, dt);
      gradients_.problem().score(head_.index, head_.lengths, i, seen, p);
      for (std::size_t n = 0; n < count; ++n) {
        p[n] = std::exp(p[n] - head_.lse[i]);
        ds[n] = p[n] * (ds[n] - head_.dot[static_cast<std::size_t>(i)]);
        dt[n] *= ds[n];
      }
    }
    for (std::vector<double>* all : {&weights_, &scores_, &products_}) {
      const std::span<double> row = std::span(*all).subspan(begin, width);
      std::ranges::fill(row.first(std::min(skipped, width)), 0);
      std::ranges::fill(row.subspan(std::min(skipped + count, width)), 0);
    }
  }

  const Gradients& gradients_;
  const Head& head_;
  Span queries_, keys_;
  std::vector<double> weights_, scores_, products_;
};

/// Calls body for every tile's range of [0, length).
template <class Body>
void for_each_span(std::int64_t length, const Body& body) {
  for (std::int64_t begin = 0; begin < length; begin += kTile) {
    body(Span{begin, std::min(begin + kTile, length)});
  }
}

std::int64_t spans_of(std::int64_t length) {
  return (length + kTile - 1) / kTile;
}

Span span_at(std::int64_t number, std::int64_t length) {
  return {number * kTile, std::min((number + 1) * kTile, length)};
}

void store(TrackedOutput& out, const op::HeadPlace& place, const Span& positions, std::int64_t channels,
           std::span<const double> sums, double factor) {
  for (std::int64_t i = positions.begin; i < positions.end; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) {
      out.set(static_cast<std::size_t>(place.first + i * place.stride + c),
              factor * sums[static_cast<std::size_t>((i - positions.begin) * channels + c)]);
    }
  }
}

void query_gradient(const Gradients& g, std::int64_t batch, std::int64_t index, std::int64_t block, TrackedOutput& dq) {
  const op::AttentionParams& p = g.params();
  const Head head = g.head(batch, index);
  const Span all = span_at(block, p.sq);
  const Span queries{all.begin, std::clamp(head.lengths.queries, all.begin, all.end)};
  std::vector<double> sums(static_cast<std::size_t>(all.size() * p.d));
  if (queries.size() > 0) {
    for_each_span(head.lengths.keys, [&](const Span& keys) {
      const Tile tile(g, head, queries, keys);
      tile.add(tile.products(), false, head.keys, p.d, sums);
    });
  }
  store(dq, op::head_place(p, batch, index, p.heads, p.sq, p.d), all, p.d, sums, g.problem().factor());
}

void key_gradients(const Gradients& g, std::int64_t batch, std::int64_t shared, std::int64_t block, TrackedOutput& dk,
                   TrackedOutput& dv) {
  const op::AttentionParams& p = g.params();
  const std::int64_t sharing = p.heads / p.key_heads();
  const Span all = span_at(block, p.sk);
  std::vector<double> of_keys(static_cast<std::size_t>(all.size() * p.d));
  std::vector<double> of_values(static_cast<std::size_t>(all.size() * p.value_channels()));
  for (std::int64_t index = shared * sharing; index < (shared + 1) * sharing; ++index) {
    const Head head = g.head(batch, index);
    const Span keys{all.begin, std::clamp(head.lengths.keys, all.begin, all.end)};
    if (keys.size() == 0) {
      continue;
    }
    for_each_span(head.lengths.queries, [&](const Span& queries) {
      const Tile tile(g, head, queries, keys);
      tile.add(tile.products(), true, head.queries, p.d, of_keys);
      tile.add(tile.weights(), true, head.gradient, p.value_channels(), of_values);
    });
  }
  store(dk, op::head_place(p, batch, shared, p.key_heads(), p.sk, p.d), all, p.d, of_keys, g.problem().factor());
  store(dv, op::head_place(p, batch, shared, p.key_heads(), p.sk, p.value_channels()), all, p.value_channels(),
        of_values, 1);
}

void bias_gradient(const Gradients& g, std::int64_t index, std::int64_t block, TrackedOutput& dbias) {
  const op::AttentionParams& p = g.params();
  const Span all = span_at(block, p.sq);
  const bool before_scale = p.bias == "pre_scale";
  std::vector<double> sums(static_cast<std::size_t>(all.size() * p.sk));
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    const Head head = g.head(batch, index);
    const Span queries{all.begin, std::clamp(head.lengths.queries, all.begin, all.end)};
    if (queries.size() == 0) {
      continue;
    }
    for_each_span(head.lengths.keys, [&](const Span& keys) {
      const Tile tile(g, head, queries, keys);
      const std::vector<double>& part = before_scale ? tile.products() : tile.scores();
      for (std::int64_t i = 0; i < queries.size(); ++i) {
        for (std::int64_t j = 0; j < keys.size(); ++j) {
          sums[static_cast<std::size_t>(i * p.sk + keys.begin + j)] +=
              part[static_cast<std::size_t>(i * keys.size() + j)];
        }
      }
    });
  }
  store(dbias, {index * p.sq * p.sk, p.sk}, all, p.sk, sums, before_scale ? g.problem().factor() : 1);
}

double offset_gradient(const Gradients& g, std::int64_t index) {
  double sum = 0;
  for (std::int64_t batch = 0; batch < g.params().batches; ++batch) {
    const Head head = g.head(batch, index);
    for (std::int64_t i = 0; i < head.lengths.queries; ++i) {
      sum -= std::exp(g.problem().sink(index) - head.lse[i]) * head.dot[static_cast<std::size_t>(i)];
    }
  }
  return sum;
}

/// Calls body(batch, head, block) for all blocks of all heads, in parallel.
template <class Body>
void for_each_block(std::int64_t batches, std::int64_t heads, std::int64_t length, const Body& body) {
  const std::int64_t blocks = spans_of(length);
  core::parallel_for(static_cast<std::size_t>(batches * heads * blocks), [&](std::size_t task) {
    const auto head = static_cast<std::int64_t>(task) / blocks;
    body(head / heads, head % heads, static_cast<std::int64_t>(task) % blocks);
  });
}

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  const Gradients g(p, request.inputs);
  const auto elements = [](std::int64_t count) { return static_cast<std::size_t>(count); };
  const std::int64_t queries = p.batches * p.heads * p.sq, keys = p.batches * p.key_heads() * p.sk;
  TrackedOutput dq("dq", elements(queries * p.d), true), dk("dk", elements(keys * p.d), true),
      dv("dv", elements(keys * p.value_channels()), true);
  for_each_block(p.batches, p.heads, p.sq,
                 [&](std::int64_t b, std::int64_t h, std::int64_t block) { query_gradient(g, b, h, block, dq); });
  for_each_block(p.batches, p.key_heads(), p.sk,
                 [&](std::int64_t b, std::int64_t h, std::int64_t block) { key_gradients(g, b, h, block, dk, dv); });
  op::Values result;
  for (TrackedOutput* out : {&dq, &dk, &dv}) {
    result.outputs.push_back(std::move(*out).take());
  }
  if (p.has_bias_tensor()) {
    TrackedOutput dbias("dbias", elements(p.heads * p.sq * p.sk), true);
    for_each_block(1, p.heads, p.sq,
                   [&](std::int64_t, std::int64_t h, std::int64_t block) { bias_gradient(g, h, block, dbias); });
    result.outputs.push_back(std::move(dbias).take());
  }
  if (p.softmax == "learnable") {
    TrackedOutput offset("dsoftmax_offset", elements(p.heads), true);
    core::parallel_for(elements(p.heads),
                       [&](std::size_t h) { offset.set(h, offset_gradient(g, static_cast<std::int64_t>(h))); });
    result.outputs.push_back(std::move(offset).take());
  }
  return result;
}

/// Lengths, and what the forward pass of the same inputs leaves.
void derive(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  if (request.port->name == "q_lengths" || request.port->name == "kv_lengths") {
    derive_lengths(p, request.port->name, values);
    return;
  }
  op::ReferenceRequest forward{.params = request.params, .inputs = {}, .sample = {}, .values_only = true};
  forward.inputs.assign(request.inputs.begin(), request.inputs.end());
  const op::Values passed = attention_fwd_reference().values(forward);
  const auto found = std::ranges::find(passed.outputs, request.port->name, &op::OutputValues::port);
  std::ranges::copy(found->value.span(), values.begin());
}

}  // namespace

op::Reference attention_bwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.version = "attention_bwd-1";
  reference.derive = &derive;
  return reference;
}

}  // namespace numcheck::reference
