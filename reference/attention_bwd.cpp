#include "op/attention_bwd.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "op/attention_fwd.hpp"
#include "reference/attention_problem.hpp"
#include "reference/attention_tile.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

/// Queries and keys of one tile.
constexpr std::int64_t kTile = 128;

/// Calls body for every tile's range of [0, length).
template <class Body>
void for_each_span(std::int64_t length, const Body& body) {
  for (std::int64_t begin = 0; begin < length; begin += kTile) {
    body(Positions{begin, std::min(begin + kTile, length)});
  }
}

std::int64_t spans_of(std::int64_t length) {
  return (length + kTile - 1) / kTile;
}

Positions span_at(std::int64_t number, std::int64_t length) {
  return {number * kTile, std::min((number + 1) * kTile, length)};
}

void store(TrackedOutput& out, const op::HeadPlace& place, const Positions& positions, std::int64_t channels,
           std::span<const double> sums, double factor) {
  for (std::int64_t i = positions.begin; i < positions.end; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) {
      out.set(static_cast<std::size_t>(place.first + i * place.stride + c),
              factor * sums[static_cast<std::size_t>((i - positions.begin) * channels + c)]);
    }
  }
}

void query_gradient(const AttentionGradients& g, std::int64_t batch, std::int64_t index, std::int64_t block,
                    TrackedOutput& dq) {
  const op::AttentionParams& p = g.params();
  const GradientHead head = g.head(batch, index);
  const Positions all = span_at(block, p.sq);
  const Positions queries{all.begin, std::clamp(head.lengths.queries, all.begin, all.end)};
  std::vector<double> sums(static_cast<std::size_t>(all.size() * p.d));
  if (queries.size() > 0) {
    for_each_span(head.lengths.keys, [&](const Positions& keys) {
      const GradientTile tile(g, head, queries, keys);
      tile.add(tile.dt(), false, head.keys, p.d, sums);
    });
  }
  store(dq, op::head_place(p, batch, index, p.heads, p.sq, p.d), all, p.d, sums, g.problem().factor());
}

void key_gradients(const AttentionGradients& g, std::int64_t batch, std::int64_t shared, std::int64_t block,
                   TrackedOutput& dk, TrackedOutput& dv) {
  const op::AttentionParams& p = g.params();
  const std::int64_t sharing = p.heads / p.key_heads();
  const Positions all = span_at(block, p.sk);
  std::vector<double> of_keys(static_cast<std::size_t>(all.size() * p.d));
  std::vector<double> of_values(static_cast<std::size_t>(all.size() * p.value_channels()));
  for (std::int64_t index = shared * sharing; index < (shared + 1) * sharing; ++index) {
    const GradientHead head = g.head(batch, index);
    const Positions keys{all.begin, std::clamp(head.lengths.keys, all.begin, all.end)};
    if (keys.size() == 0) {
      continue;
    }
    for_each_span(head.lengths.queries, [&](const Positions& queries) {
      const GradientTile tile(g, head, queries, keys);
      tile.add(tile.dt(), true, head.queries, p.d, of_keys);
      tile.add(tile.p(), true, head.gradient, p.value_channels(), of_values);
    });
  }
  store(dk, op::head_place(p, batch, shared, p.key_heads(), p.sk, p.d), all, p.d, of_keys, g.problem().factor());
  store(dv, op::head_place(p, batch, shared, p.key_heads(), p.sk, p.value_channels()), all, p.value_channels(),
        of_values, 1);
}

void bias_gradient(const AttentionGradients& g, std::int64_t index, std::int64_t block, TrackedOutput& dbias) {
  const op::AttentionParams& p = g.params();
  const Positions all = span_at(block, p.sq);
  const bool before_scale = p.bias == "pre_scale";
  std::vector<double> sums(static_cast<std::size_t>(all.size() * p.sk));
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    const GradientHead head = g.head(batch, index);
    const Positions queries{all.begin, std::clamp(head.lengths.queries, all.begin, all.end)};
    if (queries.size() == 0) {
      continue;
    }
    for_each_span(head.lengths.keys, [&](const Positions& keys) {
      const GradientTile tile(g, head, queries, keys);
      const std::vector<double>& part = before_scale ? tile.dt() : tile.ds();
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

double offset_gradient(const AttentionGradients& g, std::int64_t index) {
  double sum = 0;
  for (std::int64_t batch = 0; batch < g.params().batches; ++batch) {
    const GradientHead head = g.head(batch, index);
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
  const AttentionGradients g(p, request.inputs);
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
