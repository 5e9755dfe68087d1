#include "op/attention_fwd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "reference/attention_block.hpp"
#include "reference/attention_problem.hpp"
#include "reference/references.hpp"
#include "reference/tracked_output.hpp"
#include "tolerance/attention_model.hpp"

namespace numcheck::reference {
namespace {

using tolerance::AttentionFact;

struct Outputs {
  TrackedOutput o, lse;
  std::vector<core::Buffer<float>> facts;
};

/// Sets one query's output, its statistic and its facts.
void store(const AttentionHead& head, const AttentionBlock& block, std::int64_t i, std::int64_t in_block,
           Outputs& out) {
  const op::AttentionParams& p = head.problem.params();
  const std::size_t begin = head.problem.output_index(head.batch, head.index, i);
  const auto query = static_cast<std::size_t>((head.batch * p.heads + head.index) * p.sq + i);
  for (std::int64_t c = 0; c < p.value_channels(); ++c) {
    const std::size_t at = begin + static_cast<std::size_t>(c);
    if (head.values_only) {
      out.o.set(at, block.output(in_block, c));
    } else if (block.may_be_nan(in_block, c)) {
      out.o.set_undetermined(at, 0);
    } else {
      out.o.set(at, block.output(in_block, c), block.spread(in_block, c), block.squares(in_block, c));
    }
  }
  out.lse.set(query, block.lse(in_block));
  for (std::size_t f = 0; f < out.facts.size(); ++f) {
    out.facts[f][query] = static_cast<float>(block.fact(in_block, static_cast<AttentionFact>(f)));
  }
}

/// A query beyond its sequence's length, or one of which kernels may think differently.
void leave_out(const AttentionHead& head, std::int64_t i, Outputs& out) {
  const op::AttentionParams& p = head.problem.params();
  const std::size_t begin = head.problem.output_index(head.batch, head.index, i);
  const auto query = static_cast<std::size_t>((head.batch * p.heads + head.index) * p.sq + i);
  for (std::int64_t c = 0; c < p.value_channels(); ++c) {
    out.o.set_undetermined(begin + static_cast<std::size_t>(c), 0);
  }
  out.lse.set_undetermined(query, 0);
  for (core::Buffer<float>& fact : out.facts) {
    fact[query] = std::numeric_limits<float>::infinity();
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
  const std::int64_t end = std::min(first + count, head.problem.params().sq);
  const std::int64_t within = std::clamp(head.lengths.queries, first, end);
  AttentionBlock block(head, first, within - first);
  block.run();
  for (std::int64_t i = first; i < end; ++i) {
    const bool determined = i < within && block.is_determined(i - first);
    determined ? store(head, block, i, i - first, out) : leave_out(head, i, out);
  }
}

/// Of both outputs, the elements of queries beyond their sequences' lengths.
void name_outside(const AttentionProblem& problem, op::OutputValues& o, op::OutputValues& lse) {
  const op::AttentionParams& p = problem.params();
  for (std::int64_t task = 0; task < p.batches * p.heads; ++task) {
    const std::int64_t batch = task / p.heads;
    const std::int64_t queries = problem.lengths(batch).queries;
    for (std::int64_t i = queries; i < p.sq; ++i) {
      const auto first = static_cast<std::int64_t>(problem.output_index(batch, task % p.heads, i));
      o.outside.push_back({first, first + p.value_channels()});
    }
    if (queries < p.sq) {
      lse.outside.push_back({task * p.sq + queries, (task + 1) * p.sq});
    }
  }
}

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  const AttentionProblem problem(p, request.inputs);
  const std::int64_t heads = p.batches * p.heads;
  const auto queries = static_cast<std::size_t>(heads * p.sq);
  Outputs out{
      {"o", queries * static_cast<std::size_t>(p.value_channels()), request.values_only}, {"lse", queries, true}, {}};
  for (std::size_t f = 0; f < static_cast<std::size_t>(AttentionFact::count) && !request.values_only; ++f) {
    out.facts.emplace_back(queries);
  }
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
  name_outside(problem, result.outputs.front(), result.outputs.back());
  return result;
}

void derive(const op::DeriveRequest& request, std::span<double> values) {
  derive_lengths(op::from_params<op::AttentionFwdParams>(*request.params), request.port->name, values);
}

}  // namespace

op::Reference attention_fwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.version = "attention_fwd-3";
  reference.derive = &derive;
  return reference;
}

}  // namespace numcheck::reference
