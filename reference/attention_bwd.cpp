#include "op/attention_bwd.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "op/attention_fwd.hpp"
#include "reference/attention_bias_gradient.hpp"
#include "reference/attention_diagnosis.hpp"
#include "reference/attention_dropout_diagnosis.hpp"
#include "reference/attention_dropout_mask.hpp"
#include "reference/attention_gates.hpp"
#include "reference/attention_gradient_blocks.hpp"
#include "reference/attention_gradient_sums.hpp"
#include "reference/attention_offset_gradient.hpp"
#include "reference/attention_own_forward.hpp"
#include "reference/attention_problem.hpp"
#include "reference/attention_score_gradients.hpp"
#include "reference/attention_tile.hpp"
#include "reference/dequantised.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference {
namespace {

using Of = GradientFacts::Of;
using Sums = GradientSums;

void query_gradient(const AttentionGradients& g, std::int64_t batch, std::int64_t index, std::int64_t block,
                    GradientOutput& dq) {
  const op::AttentionParams& p = g.params();
  const GradientHead& head = g.head(batch, index);
  const Positions all = span_at(block, op::positions(p, op::Side::queries, batch));
  const Positions queries{all.begin, std::clamp(head.lengths.queries, all.begin, all.end)};
  Sums sums(Of::queries, g, all.size(), p.d);
  std::vector<double> mean(sums.squared.size());
  GradientTile tile(g);
  const GradientTile::Visit visit = visitor(
      g, [&](const PairRow& pairs) { sums.add(head, pairs, static_cast<std::size_t>(pairs.query - all.begin)); });
  for_each_span(queries.size() == 0 ? 0 : head.lengths.keys, [&](const Positions& keys) {
    sums.begin(queries, keys);
    if (!tile.load(head, queries, keys, visit)) {
      return;
    }
    sums.add(tile, tile.dt(), false, head.keys);
    if (!mean.empty()) {
      tile.add(tile.reach(), false, head.keys, p.d, mean);
    }
  });
  const BlockPlace place{op::head_place(p, op::Side::queries, batch, index, p.d), (batch * p.heads + index) * p.sq, all,
                         p.d};
  const double factor = g.problem().factor();
  store(dq, place, sums, factor);
  if (mean.empty()) {
    return;
  }
  store_elements(dq, tolerance::kMean, place, mean, factor);
  store_roots(dq, tolerance::kDropped, place, sums.dropped, factor);
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    const auto at = static_cast<std::size_t>(i), row = static_cast<std::size_t>(i - all.begin);
    GradientFacts::store_own(
        {.score_common =
             factor * factor * sums.facts.change(row) *
             common_square(head.queries.data + i * head.queries.stride,
                           std::span(mean).subspan(row * static_cast<std::size_t>(p.d), static_cast<std::size_t>(p.d)),
                           sums.facts.weight(row)),
         .dot = std::isfinite(head.dot[at]) ? head.dot[at] : 0,
         .dot_second = head.errors->dot_second[at],
         .dot_variance = head.errors->dot_variance[at],
         .statistic = std::isfinite(head.lse[at]) ? head.lse[at] : 0,
         .equal_values = GradientFacts::are_equal_values(p, head.dot[at], head.errors->dot_second[at])},
        dq.facts, static_cast<std::size_t>(place.row + i));
  }
}

/// Facts of keys and values that all queries of all heads share; `mean` is sum p slope q.
void store_own_of_keys(const AttentionGradients& g, std::int64_t batch, std::int64_t shared, const Positions& all,
                       const GradientFacts& of_keys, const Sums& of_values, std::span<const double> mean,
                       std::int64_t first, GradientOutput& dk, GradientOutput& dv) {
  const op::AttentionParams& p = g.params();
  const GradientHead& head = g.head(batch, shared * (p.heads / p.key_heads()));
  const auto d = static_cast<std::size_t>(p.d), width = static_cast<std::size_t>(p.value_channels());
  for (std::int64_t j = all.begin; j < std::min(all.end, head.lengths.keys); ++j) {
    const auto row = static_cast<std::size_t>(j - all.begin), at = static_cast<std::size_t>(first + j);
    const double weight = of_values.facts.weight(row);
    const std::span<const double> sums = std::span(of_values.value).subspan(row * width, width);
    const double* values = head.values.data + j * head.values.stride;
    GradientFacts::Own own{
        .score_common = g.problem().factor() * g.problem().factor() *
                        common_square(head.keys.data + j * head.keys.stride, mean.subspan(row * d, d), weight),
        .dot_second = common_square(values, sums, weight)};
    for (std::size_t c = 0; c < width && weight > 0; ++c) {
      const double product = values[c] * sums[c] / weight;
      own.dot += std::isfinite(product) ? product : 0;
    }
    own.equal_values = GradientFacts::are_equal_values(p, own.dot, own.dot_second);
    GradientFacts::store_own({.score_common = own.score_common}, dv.facts, at);
    own.score_common *= of_keys.change(row);
    GradientFacts::store_own(own, dk.facts, at);
  }
}

/// Of keys and values; to `dq`, if there is one, what these keys add to gradients of queries, but for the factor.
void key_gradients(const AttentionGradients& g, std::int64_t batch, std::int64_t shared, std::int64_t block,
                   const StatisticFacts& statistics, GradientOutput& dk, GradientOutput& dv, GradientOutput* dq) {
  const op::AttentionParams& p = g.params();
  const std::int64_t sharing = p.heads / p.key_heads(), width = p.value_channels();
  const Positions all = span_at(block, op::positions(p, op::Side::keys, batch));
  Sums of_keys(Of::keys, g, all.size(), p.d, statistics), of_values(Of::values, g, all.size(), width, statistics);
  std::vector<double> mean(of_keys.squared.size());
  GradientTile tile(g);
  for (std::int64_t index = shared * sharing; index < (shared + 1) * sharing; ++index) {
    const GradientHead& head = g.head(batch, index);
    const Positions keys{all.begin, std::clamp(head.lengths.keys, all.begin, all.end)};
    if (keys.size() == 0) {
      continue;
    }
    const GradientTile::Visit visit = visitor(g, [&](const PairRow& pairs) {
      const auto at = static_cast<std::size_t>(pairs.keys.begin - all.begin);
      of_keys.add(head, pairs, at);
      of_values.add(head, pairs, at);
    });
    for_each_span(head.lengths.queries, [&](const Positions& queries) {
      of_keys.begin(queries, keys);
      of_values.begin(queries, keys);
      if (!tile.load(head, queries, keys, visit)) {
        return;
      }
      of_keys.add(tile, tile.dt(), true, head.queries);
      of_values.add(tile, tile.dropped(), true, head.gradient);
      if (dq != nullptr) {
        const op::HeadPlace place = op::head_place(p, op::Side::queries, batch, index, p.d);
        tile.add(tile.dt(), false, head.keys, p.d,
                 dq->out.values().value.data() + place.first + queries.begin * place.stride, place.stride);
      }
      if (!mean.empty()) {
        tile.add(tile.reach(), true, head.queries, p.d, mean);
      }
    });
    of_keys.end_head();
    of_values.end_head();
  }
  const double factor = g.problem().factor();
  const std::int64_t row = (batch * p.key_heads() + shared) * p.sk;
  const BlockPlace keys{op::head_place(p, op::Side::keys, batch, shared, p.d), row, all, p.d};
  store(dk, keys, of_keys, factor);
  const BlockPlace values{op::head_place(p, op::Side::keys, batch, shared, width), row, all, width};
  store(dv, values, of_values, 1);
  if (!mean.empty()) {
    store_elements(dk, tolerance::kMean, keys, mean, factor);
    store_roots(dk, tolerance::kDropped, keys, of_keys.dropped, factor);
    if (sharing > 1) {
      store_roots(dk, tolerance::kParts, keys, of_keys.parts, factor);
      store_roots(dv, tolerance::kParts, values, of_values.parts, 1);
    }
    store_own_of_keys(g, batch, shared, all, of_keys.facts, of_values, mean, row, dk, dv);
  }
}

/// All gradients of the heads that share keys, without error models: five products for each tile, where separate gradients
/// of queries and keys take seven. Sums of queries have the same terms in the same order, and so the same bits.
void all_gradients(const AttentionGradients& g, std::int64_t batch, std::int64_t shared, GradientOutput& dq,
                   GradientOutput& dk, GradientOutput& dv) {
  const op::AttentionParams& p = g.params();
  const std::int64_t sharing = p.heads / p.key_heads();
  const auto for_each_query = [&](const auto& body) {
    for (std::int64_t index = shared * sharing; index < (shared + 1) * sharing; ++index) {
      const op::HeadPlace place = op::head_place(p, op::Side::queries, batch, index, p.d);
      for (std::int64_t i = 0; i < op::positions(p, op::Side::queries, batch); ++i) {
        const auto first = static_cast<std::size_t>(place.first + i * place.stride);
        body(dq.out.values().value.span().subspan(first, static_cast<std::size_t>(p.d)));
      }
    }
  };
  for_each_query([](std::span<double> row) { std::ranges::fill(row, 0.0); });
  for (std::int64_t block = 0; block < spans_of(p.sk); ++block) {
    key_gradients(g, batch, shared, block, {}, dk, dv, &dq);
  }
  for_each_query([factor = g.problem().factor()](std::span<double> row) {
    std::ranges::for_each(row, [factor](double& x) { x *= factor; });
  });
}

/// How many of the heads that keys have are left to one thread each: all that keep all threads busy.
std::int64_t whole_heads(const AttentionGradients& g) {
  const op::AttentionParams& p = g.params();
  const std::int64_t heads = p.batches * p.key_heads(), threads = core::thread_count();
  return g.values_only() ? heads / threads * threads : 0;
}

/// What error models need of each element besides the facts of its row.
void add_element_facts(const AttentionGradients& g, GradientOutput& dq, GradientOutput& dk, GradientOutput& dv) {
  const op::AttentionParams& p = g.params();
  dq.add_element_fact(tolerance::kMean);
  dk.add_element_fact(tolerance::kMean);
  if (p.has_dropout()) {
    dq.add_element_fact(tolerance::kDropped);
    dk.add_element_fact(tolerance::kDropped);
  }
  for (GradientOutput* out : {&dq, &dk, &dv}) {
    if (g.uneven()) {
      out->add_element_fact(tolerance::kWeightRatio);
      out->add_element_fact(tolerance::kSpreadRatio);
      out->add_element_fact(tolerance::kLengthRatio);
    }
  }
  if (p.heads > p.key_heads()) {
    dk.add_element_fact(tolerance::kParts);
    dv.add_element_fact(tolerance::kParts);
  }
}

/// Output dp_amax.
op::OutputValues largest_gradient(const AttentionGradients& g) {
  TrackedOutput amax("dp_amax", 1, g.values_only());
  const double largest = g.scales_fit() ? largest_score_gradient(g) : 0;
  if (g.scales_fit() && std::isfinite(largest)) {
    amax.set(0, largest, 0, 0);
  } else {
    amax.set_undetermined(0, 0);
  }
  return std::move(amax).take();
}

op::Values values(const op::ReferenceRequest& request) {
  if (lacks_drawn_mask(request)) {
    return drawn_mask(request);
  }
  if (needs_own_forward(request)) {
    return with_own_forward(request, &values);
  }
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  const bool only = request.values_only;
  const Dequantised inputs(request.inputs);
  const AttentionGradients g(p, inputs.operands(), only);
  GradientOutput dq("dq", g.problem(), op::Side::queries, p.d, only);
  GradientOutput dk("dk", g.problem(), op::Side::keys, p.d, only);
  GradientOutput dv("dv", g.problem(), op::Side::keys, p.value_channels(), only);
  add_element_facts(g, dq, dk, dv);
  const std::int64_t whole = whole_heads(g), sharing = p.heads / p.key_heads();
  core::parallel_for(static_cast<std::size_t>(whole), [&](std::size_t task) {
    const auto head = static_cast<std::int64_t>(task);
    all_gradients(g, head / p.key_heads(), head % p.key_heads(), dq, dk, dv);
  });
  for_each_block({whole * sharing, p.batches * p.heads}, p.sq, [&](std::int64_t head, std::int64_t block) {
    query_gradient(g, head / p.heads, head % p.heads, block, dq);
  });
  using tolerance::GradientFact;
  const StatisticFacts statistics{
      .square = dq.fact(GradientFact::statistic_square),
      .second = dq.fact(GradientFact::statistic_second),
      .product = dq.fact(GradientFact::largest_product),
      .argument = dq.fact(GradientFact::largest_argument),
  };
  for_each_block({whole, p.batches * p.key_heads()}, p.sk, [&](std::int64_t head, std::int64_t block) {
    key_gradients(g, head / p.key_heads(), head % p.key_heads(), block, statistics, dk, dv, nullptr);
  });
  op::Values result;
  std::optional<op::OutputValues> offset;
  if (p.softmax == "learnable") {
    offset = offset_gradient(g, dq);
  }
  for (GradientOutput* out : {&dq, &dk, &dv}) {
    result.outputs.push_back(std::move(*out).take());
  }
  if (p.has_bias_tensor()) {
    result.outputs.push_back(bias_gradient(g, statistics));
  }
  if (offset) {
    result.outputs.push_back(std::move(*offset));
  }
  if (g.rounded_gradients().scaled) {
    result.outputs.push_back(largest_gradient(g));
  }
  return result;
}

/// Lengths, the dropout mask, and what the forward pass of the same inputs leaves.
void derive(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  const std::string_view port = request.port->name;
  if (is_attention_input(port)) {
    derive_attention_input(p, port, values);
    return;
  }
  if (port == "dp_scale" || port == "dp_scale_inv") {
    derive_gradient_scale(request, values);
    return;
  }
  op::ReferenceRequest forward{.params = request.params, .inputs = {}, .sample = {}, .values_only = true};
  forward.inputs.assign(request.inputs.begin(), request.inputs.end());
  const op::Values passed = attention_fwd_reference().values(forward);
  const auto found = std::ranges::find(passed.outputs, request.port->name, &op::OutputValues::port);
  std::ranges::copy(found->value.span(), values.begin());
}

std::vector<op::Finding> diagnose(const op::FindingRequest& request) {
  std::vector<op::Finding> findings = diagnose_attention_gradients(request);
  std::ranges::move(diagnose_attention(request), std::back_inserter(findings));  // where o and lse are outputs
  explain_dropout(request, &values, findings);
  return findings;
}

}  // namespace

op::Reference attention_bwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.version = "attention_bwd-16";
  reference.mistakes = &attention_bwd_mistakes;
  reference.derive = &derive;
  reference.findings = &judge_attention_itself;
  reference.gates = attention_gates();
  reference.diagnose = &diagnose;
  return reference;
}

}  // namespace numcheck::reference
