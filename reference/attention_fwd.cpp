#include "op/attention_fwd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "reference/attention_block.hpp"
#include "reference/attention_diagnosis.hpp"
#include "reference/attention_dropout_mask.hpp"
#include "reference/attention_gates.hpp"
#include "reference/attention_problem.hpp"
#include "reference/dequantised.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"
#include "reference/tracked_output.hpp"
#include "tolerance/attention_model.hpp"

namespace numcheck::reference {
namespace {

using tolerance::AttentionFact;
using tolerance::MaxLogitFact;

struct Outputs {
  TrackedOutput o, lse;
  std::vector<core::Buffer<float>> facts;
  std::optional<TrackedOutput> max_logit;
  std::vector<core::Buffer<float>> max_facts;
  std::vector<double> largest;  ///< weight of each query; infinite where kernels may think differently
};

/// Where a query's output begins, its statistic and its facts are.
struct Place {
  std::size_t output, statistic, facts;
  Place(const AttentionHead& head, std::int64_t i) {
    const op::AttentionParams& p = head.problem.params();
    const op::HeadPlace o = op::head_place(p, op::Side::queries, head.batch, head.index, p.value_channels());
    const op::HeadPlace lse = op::statistic_place(p, head.batch, head.index);
    output = static_cast<std::size_t>(o.first + i * o.stride);
    statistic = static_cast<std::size_t>(lse.first + i * lse.stride);
    facts = static_cast<std::size_t>((head.batch * p.heads + head.index) * p.sq + i);
  }
};

void store_max_logit(const AttentionBlock& block, std::int64_t in_block, const Place& place, Outputs& out) {
  if (!block.is_max_determined(in_block)) {
    out.max_logit->set_undetermined(place.statistic, 0);
    return;
  }
  out.max_logit->set(place.statistic, block.max_logit(in_block), 0, 0);
  if (!out.max_facts.empty()) {
    const AttentionBlock::MaxLogitFacts facts = block.max_facts(in_block);
    for (std::size_t f = 0; f < facts.size(); ++f) {
      out.max_facts[f][place.facts] = static_cast<float>(facts[f]);
    }
  }
}

/// Sets one query's output, its statistic and its facts.
void store(const AttentionHead& head, const AttentionBlock& block, std::int64_t i, std::int64_t in_block,
           Outputs& out) {
  const op::AttentionParams& p = head.problem.params();
  const Place place(head, i);
  for (std::int64_t c = 0; c < p.value_channels(); ++c) {
    const std::size_t at = place.output + static_cast<std::size_t>(c);
    if (head.values_only) {
      out.o.set(at, block.output(in_block, c));
    } else if (block.may_be_nan(in_block, c) || block.may_overflow(in_block, c)) {
      out.o.set_undetermined(at, 0);
    } else {
      out.o.set(at, block.output(in_block, c), block.spread(in_block, c), block.squares(in_block, c));
    }
  }
  out.lse.set(place.statistic, block.lse(in_block));
  if (out.max_logit) {
    store_max_logit(block, in_block, place, out);
  }
  out.largest[place.facts] = block.largest_weight(in_block);
  for (std::size_t f = 0; f < out.facts.size(); ++f) {
    out.facts[f][place.facts] = static_cast<float>(block.fact(in_block, static_cast<AttentionFact>(f)));
  }
}

/// A query that is NaN, or of which kernels may think differently.
void set_without_facts(const AttentionHead& head, std::int64_t i, bool is_nan, Outputs& out) {
  const Place place(head, i);
  const auto set = [is_nan](TrackedOutput& output, std::size_t at) {
    is_nan ? output.set(at, std::numeric_limits<double>::quiet_NaN(), 0, 0) : output.set_undetermined(at, 0);
  };
  for (std::int64_t c = 0; c < head.problem.params().value_channels(); ++c) {
    set(out.o, place.output + static_cast<std::size_t>(c));
  }
  set(out.lse, place.statistic);
  if (out.max_logit) {
    out.max_logit->set_undetermined(place.statistic, 0);
  }
  out.largest[place.facts] = std::numeric_limits<double>::infinity();
  for (core::Buffer<float>& fact : out.facts) {
    fact[place.facts] = std::numeric_limits<float>::infinity();
  }
}

/// Queries of one block, the work of a thread at a time. It depends on the case alone: results do not depend on the number
/// of threads.
std::int64_t queries_of_block(const op::AttentionParams& p) {
  // Large blocks need each key less often; but there should be blocks for many threads.
  constexpr std::int64_t kLargest = 256, kSmallest = 64, kBlocks = 128;
  std::int64_t queries = kLargest;
  while (queries > kSmallest && p.batches * p.heads * (p.sq / queries) < kBlocks) {
    queries /= 2;
  }
  return queries;
}

void attend(const AttentionHead& head, std::int64_t first, std::int64_t count, Outputs& out) {
  const std::int64_t end = std::min(first + count, head.lengths.queries);
  if (first >= end) {
    return;
  }
  AttentionBlock block(head, first, end - first);
  block.run();
  for (std::int64_t i = first; i < end; ++i) {
    const bool is_plain = head.values_only || block.is_determined(i - first);
    is_plain ? store(head, block, i, i - first, out) : set_without_facts(head, i, block.is_nan(i - first), out);
  }
}

/// Elements that no query that counts has. Those between the sequences of layout thd belong to nobody.
void leave_out_unused(const AttentionProblem& problem, Outputs& out) {
  const op::AttentionParams& p = problem.params();
  const std::vector<std::int64_t> lengths = problem.all_lengths(op::Side::queries);
  out.o.leave_out(op::unused_elements(p, op::Side::queries, p.value_channels(), lengths));
  out.lse.leave_out(op::unused_statistics(p, lengths));
  if (out.max_logit) {
    out.max_logit->leave_out(op::unused_statistics(p, lengths));
  }
}

Outputs outputs_of(const op::AttentionFwdParams& p, bool values_only) {
  const auto queries = static_cast<std::size_t>(p.batches * p.heads * p.sq);
  const auto in_tensor = static_cast<std::size_t>(op::tokens(p, op::Side::queries) * p.heads);
  Outputs out{{"o", in_tensor * static_cast<std::size_t>(p.value_channels()), values_only},
              {"lse", in_tensor, true},
              {},
              std::nullopt,
              {},
              std::vector<double>(queries)};
  for (std::size_t f = 0; f < static_cast<std::size_t>(AttentionFact::count) && !values_only; ++f) {
    std::ranges::fill(out.facts.emplace_back(queries).span(), std::numeric_limits<float>::infinity());
  }
  if (p.max_logit) {
    out.max_logit.emplace("max_logit", in_tensor, values_only);
  }
  for (std::size_t f = 0; f < static_cast<std::size_t>(MaxLogitFact::count) && p.max_logit && !values_only; ++f) {
    std::ranges::fill(out.max_facts.emplace_back(queries).span(), 0.0F);  // of queries that are left out
  }
  return out;
}

/// The largest weight of all queries.
op::OutputValues largest_weight(const Outputs& out, bool values_only) {
  TrackedOutput amax("s_amax", 1, values_only);
  double largest = 0;
  for (const double weight : out.largest) {
    largest = std::fmax(largest, weight);
  }
  std::isinf(largest) ? amax.set_undetermined(0, 0) : amax.set(0, largest, 0, 0);
  return std::move(amax).take();
}

op::Values values(const op::ReferenceRequest& request) {
  if (lacks_drawn_mask(request)) {
    return drawn_mask(request);
  }
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const Dequantised inputs(request.inputs);
  const AttentionProblem problem(p, inputs.operands());
  const std::int64_t heads = p.batches * p.heads;
  Outputs out = outputs_of(p, request.values_only);
  leave_out_unused(problem, out);
  std::vector<std::optional<AttentionHead>> prepared(static_cast<std::size_t>(heads));
  core::parallel_for(prepared.size(), [&](std::size_t h) {
    const auto head = static_cast<std::int64_t>(h);
    prepared[h].emplace(problem, head / p.heads, head % p.heads, request.values_only);
  });
  const std::int64_t of_block = queries_of_block(p), blocks = (p.sq + of_block - 1) / of_block;
  core::parallel_for(prepared.size() * static_cast<std::size_t>(blocks), [&](std::size_t task) {
    attend(*prepared[task / static_cast<std::size_t>(blocks)], static_cast<std::int64_t>(task) % blocks * of_block,
           of_block, out);
  });
  op::Values result;
  result.outputs.push_back(std::move(out.o).take());
  result.outputs.back().row_facts = std::move(out.facts);
  result.outputs.push_back(std::move(out.lse).take());
  if (out.max_logit) {
    result.outputs.push_back(std::move(*out.max_logit).take());
    result.outputs.back().row_facts = std::move(out.max_facts);
  }
  if (problem.least_weight()) {
    result.outputs.push_back(largest_weight(out, request.values_only));
  }
  return result;
}

void derive(const op::DeriveRequest& request, std::span<double> values) {
  derive_attention_input(op::from_params<op::AttentionFwdParams>(*request.params), request.port->name, values);
}

}  // namespace

op::Reference attention_fwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.mistakes = &attention_fwd_mistakes;
  reference.version = "attention_fwd-11";
  reference.derive = &derive;
  reference.findings = &judge_attention_itself;
  reference.gates = attention_gates();
  reference.diagnose = &diagnose_attention;
  return reference;
}

}  // namespace numcheck::reference
