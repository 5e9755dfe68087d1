#include "reference/attention_dropout_mask.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "op/attention_layout.hpp"
#include "reference/attention_dropout_copies.hpp"
#include "reference/attention_dropout_repeats.hpp"
#include "reference/attention_dropout_reuse.hpp"
#include "reference/attention_dropout_shares.hpp"
#include "reference/chance.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

/// A weight: its key, query, head and sequence.
struct Place {
  std::int64_t batch, head, i, j;
};

/// Independent draws that are counted: how many there are, and how many are "dropped".
struct Count {
  double draws = 0;
  double dropped = 0;

  void add(bool drops) {
    draws += 1;
    dropped += drops ? 1 : 0;
  }
  void add(const Count& other) {
    draws += other.draws;
    dropped += other.dropped;
  }
};

/// Weights that are dropped, pairs of neighbours of which both are, and weights whose mask is neither 0 nor 1. Pairs are
/// disjoint, so that they are independent.
struct Counts {
  Count weights, keys, queries, heads, sequences;
  double strange = 0;

  void add(const Counts& other) {
    weights.add(other.weights);
    keys.add(other.keys);
    queries.add(other.queries);
    heads.add(other.heads);
    sequences.add(other.sequences);
    strange += other.strange;
  }
};

class DrawnMask {
 public:
  DrawnMask(const op::AttentionParams& p, std::span<const double> mask)
      : p_(p),
        mask_(mask),
        queries_(op::sequence_lengths(p, op::Side::queries)),
        keys_(op::sequence_lengths(p, op::Side::keys)) {}

  [[nodiscard]] Counts count() const {
    std::vector<Counts> of_heads(static_cast<std::size_t>(p_.batches * p_.heads));
    core::parallel_for(of_heads.size(), [&](std::size_t h) {
      const auto head = static_cast<std::int64_t>(h);
      of_heads[h] = count(head / p_.heads, head % p_.heads);
    });
    Counts all;
    for (const Counts& counts : of_heads) {
      all.add(counts);
    }
    return all;
  }

  /// Elements of weights that are seen and are neither kept nor dropped.
  [[nodiscard]] std::vector<std::size_t> strange() const {
    std::vector<std::size_t> elements;
    for (std::int64_t head = 0; head < p_.batches * p_.heads; ++head) {
      const std::int64_t batch = head / p_.heads;
      for (std::int64_t i = 0; i < queries_[static_cast<std::size_t>(batch)]; ++i) {
        const op::KeyRange keys = seen(batch, i);
        for (std::int64_t j = keys.begin; j < keys.end; ++j) {
          const Place at{batch, head % p_.heads, i, j};
          if (is_strange(number(at))) {
            elements.push_back(element(at));
          }
        }
      }
    }
    return elements;
  }

 private:
  static bool is_strange(double number) { return number != 0 && number != 1; }

  [[nodiscard]] std::size_t element(const Place& at) const {
    return static_cast<std::size_t>(((at.batch * p_.heads + at.head) * p_.sq + at.i) * p_.sk + at.j);
  }

  /// Of one head of one sequence, together with the next head and the next sequence.
  [[nodiscard]] Counts count(std::int64_t batch, std::int64_t head) const {
    Counts counts;
    for (std::int64_t i = 0; i < queries_[static_cast<std::size_t>(batch)]; ++i) {
      const op::KeyRange keys = seen(batch, i);
      for (std::int64_t j = keys.begin; j < keys.end; ++j) {
        const Place at{batch, head, i, j};
        const double value = number(at);
        counts.strange += is_strange(value) ? 1 : 0;
        if (value == kNoDraw) {
          continue;
        }
        counts.weights.add(value == 0);
        add_pair(counts.keys, at, {batch, head, i, j + 1}, j % 2 == 0);
        add_pair(counts.queries, at, {batch, head, i + 1, j}, i % 2 == 0);
        add_pair(counts.heads, at, {batch, head + 1, i, j}, head % 2 == 0);
        add_pair(counts.sequences, at, {batch + 1, head, i, j}, batch % 2 == 0);
      }
    }
    return counts;
  }

  [[nodiscard]] op::KeyRange seen(std::int64_t batch, std::int64_t i) const {
    const auto b = static_cast<std::size_t>(batch);
    return p_.visible(i, queries_[b], keys_[b]);
  }

  [[nodiscard]] double number(const Place& at) const { return mask_[element(at)]; }

  [[nodiscard]] bool exists(const Place& at) const {
    if (at.batch >= p_.batches || at.head >= p_.heads || at.i >= queries_[static_cast<std::size_t>(at.batch)]) {
      return false;
    }
    const op::KeyRange keys = seen(at.batch, at.i);
    return keys.begin <= at.j && at.j < keys.end && number(at) != kNoDraw;
  }

  void add_pair(Count& pairs, const Place& at, const Place& next, bool is_first) const {
    if (is_first && exists(next)) {
      pairs.add(number(at) == 0 && number(next) == 0);
    }
  }

  const op::AttentionParams& p_;
  std::span<const double> mask_;
  std::vector<std::int64_t> queries_, keys_;
};

/// What a share of counted draws should be, and how often a right one may be off.
struct Expected {
  const Count& count;
  double probability, one_in;
};

void add_share(std::vector<op::Finding>& findings, std::string_view name, const Expected& expected,
               std::string_view what) {
  const auto& [count, probability, one_in] = expected;
  if (count.draws == 0) {
    return;
  }
  const double share = count.dropped / count.draws;
  findings.push_back(
      {.name = std::string(name),
       .port = "dropout_mask",
       .measured = std::fabs(share - probability),
       .limit = share_error(probability, count.draws, 1, one_in),
       .text = fmt::format("{:.6f} of {:.0f} {} are dropped, expected {:.6f}", share, count.draws, what, probability)});
}

op::Values values(const op::ReferenceRequest& request) {
  return drawn_mask(request);
}

/// Any weight may be kept.
std::vector<op::ImpossibleDraw> impossible(const op::FindingRequest& request) {
  const auto p = op::from_params<op::AttentionParams>(*request.params);
  const auto delivered = std::ranges::find(request.outputs, "dropout_mask", &op::Delivered::port);
  std::vector<op::ImpossibleDraw> all;
  if (delivered != request.outputs.end()) {
    for (const std::size_t element : DrawnMask(p, delivered->value).strange()) {
      all.push_back({"dropout_mask", element, 1});
    }
  }
  return all;
}

/// The mask is all that there is: if so few weights are seen, or so few are to be dropped, that a mask which drops none or
/// all would be within the limit, a pass proves nothing.
std::vector<op::Finding> findings(const op::FindingRequest& request) {
  const auto p = op::from_params<op::AttentionParams>(*request.params);
  std::vector<op::Finding> all = judge_drawn_mask(request);
  const auto share = std::ranges::find(all, "dropped share", &op::Finding::name);
  const double limit = share == all.end() ? 1 : share->limit;
  if (std::min(p.dropout, 1 - p.dropout) <= limit) {
    all.front().fake = p.dropout <= limit ? "nothing_dropped" : "everything_dropped";
  }
  return all;
}

}  // namespace

std::span<const op::OwnGate> drawn_mask_gates() {
  static constexpr std::array kGates = {
      op::OwnGate{"neither 0 nor 1", "weights that are neither kept nor dropped"},
      op::OwnGate{"dropped share", "share of the weights that are dropped, against dropout"},
      op::OwnGate{"dropped keys", "share of neighbouring keys of which both are dropped, against dropout^2"},
      op::OwnGate{"dropped queries", "the same of neighbouring queries"},
      op::OwnGate{"dropped heads", "the same of neighbouring heads"},
      op::OwnGate{"dropped sequences", "the same of neighbouring sequences"},
      op::OwnGate{"dropped share of a head", "share of one head's weights that are dropped, of the furthest off"},
      op::OwnGate{"dropped share of a query", "the same of a query's weights in all heads"},
      op::OwnGate{"dropped share of a key", "the same of a key's weights in all heads"},
      op::OwnGate{"dropped share of a row", "the same of a query's weights in one head"},
      op::OwnGate{"dropped share of a tile", "the same of the weights of 16 queries and 16 keys in one head"},
      op::OwnGate{"repeated draws",
                  "largest correlation of weights that are a fixed number of heads, queries and keys apart"},
      op::OwnGate{"copied draws",
                  "queries, keys or tiles of one head that are copies of others: -log10 of the chance of the copy"},
  };
  return kGates;
}

bool lacks_drawn_mask(const op::ReferenceRequest& request) {
  return op::from_params<op::AttentionParams>(*request.params).draws_mask() &&
         op::find_operand(request.inputs, "dropout_mask") == nullptr;
}

op::Values drawn_mask(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::AttentionParams>(*request.params);
  TrackedOutput mask("dropout_mask", static_cast<std::size_t>(p.batches * p.heads * p.sq * p.sk), request.values_only);
  for (std::size_t at = 0; at < mask.values().value.size(); ++at) {
    mask.set_undetermined(at, 0);
  }
  mask.values().unpredictable = true;
  op::Values result;
  result.outputs.push_back(std::move(mask).take());
  return result;
}

std::vector<op::Finding> judge_draws(const op::AttentionParams& p, std::span<const double> drawn, double one_in) {
  const DrawnMask mask(p, drawn);
  const Counts all = mask.count();
  const double pairs = p.dropout * p.dropout;
  std::vector<op::Finding> findings;
  add_share(findings, "dropped share", {all.weights, p.dropout, one_in}, "weights");
  add_share(findings, "dropped keys", {all.keys, pairs, one_in}, "pairs of neighbouring keys");
  add_share(findings, "dropped queries", {all.queries, pairs, one_in}, "pairs of neighbouring queries");
  add_share(findings, "dropped heads", {all.heads, pairs, one_in}, "pairs of neighbouring heads");
  add_share(findings, "dropped sequences", {all.sequences, pairs, one_in}, "pairs of neighbouring sequences");
  std::ranges::move(judge_shares(p, drawn, one_in), std::back_inserter(findings));
  std::ranges::move(judge_repeats(p, drawn, one_in), std::back_inserter(findings));
  std::ranges::move(judge_copies(p, drawn, one_in), std::back_inserter(findings));
  return findings;
}

std::vector<op::Finding> judge_drawn_mask(const op::FindingRequest& request) {
  const auto p = op::from_params<op::AttentionParams>(*request.params);
  const auto delivered = std::ranges::find(request.outputs, "dropout_mask", &op::Delivered::port);
  if (!p.draws_mask() || delivered == request.outputs.end()) {
    return {};
  }
  std::vector<op::Finding> findings = {{"neither 0 nor 1", "dropout_mask",
                                        DrawnMask(p, delivered->value).count().strange, 0,
                                        "weights that are neither kept nor dropped"}};
  std::ranges::move(judge_draws(p, delivered->value), std::back_inserter(findings));
  if (!std::ranges::all_of(findings, [](const op::Finding& gate) { return gate.measured <= gate.limit; })) {
    explain_reuse(p, delivered->value, findings);
  }
  return findings;
}

op::Reference attention_dropout_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.version = "attention_dropout-1";
  reference.derive = [](const op::DeriveRequest& request, std::span<double> derived) {
    attention_fwd_reference().derive(request, derived);
  };
  reference.findings = &findings;
  reference.impossible = &impossible;
  reference.gates = drawn_mask_gates();
  reference.mistakes = &attention_dropout_mistakes;
  return reference;
}

}  // namespace numcheck::reference
