#include "reference/attention_padded_amax.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "core/codec.hpp"
#include "op/attention_fwd.hpp"
#include "reference/attention_compared.hpp"
#include "reference/attention_queries_beyond.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kQueries = 64;
constexpr std::int64_t kTile = 128;  ///< of queries; the last one is filled with zeros
constexpr std::string_view kCause = "queries that are padding count in the amax";

struct Amax {
  std::string_view port;
  double rounding = 0;  ///< a part of itself that it may be off by
  double expected = 0, got = 0;
  double most = 0;         ///< that it may be: the device's own numbers say so of o_amax
  double padded = 0;       ///< that of padding alone
  bool is_known = true;    ///< what padding comes to; not of scores that are too large to tell keys apart
  bool is_stored = false;  ///< it has the code of the largest output that the device left in padding

  [[nodiscard]] bool is_too_large() const noexcept { return got > most; }
  /// The part of the gap that padding closes, 0 if there is none.
  [[nodiscard]] double share() const noexcept {
    if (!is_known) {
      return is_too_large() && is_stored ? 1 : 0;
    }
    const double left = std::max(0.0, std::fabs(got - padded) - rounding * padded);
    const bool may_close = is_too_large() && std::fmin(got, padded) > expected;
    return may_close ? std::max(0.0, 1 - left / (got - expected)) : 0;
  }
};

/// Keys over which padding is weighed: those of the first `limit`, in whole blocks before the sequence's last block.
struct Blocks {
  std::int64_t keys = 0;
  std::int64_t limit = 0;

  [[nodiscard]] std::int64_t whole(const Lengths& lengths) const {
    return std::min(std::max<std::int64_t>(lengths.keys - 1, 0) / keys * keys, limit);
  }
};

/// As kernels have been seen to do it, by head dimension and mask.
constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
constexpr std::array kBlocks = {Blocks{128, kAll}, Blocks{256, kAll}, Blocks{128, 128}, Blocks{128, 256}};

/// Whole tiles of queries that weigh the same blocks.
struct Tiles {
  Blocks blocks;
  std::int64_t begin = 0, end = 0;
};

std::int64_t end_of_tiles(const op::AttentionParams& p) {
  return (p.sq + kTile - 1) / kTile * kTile;
}

/// A mask that starts in the top left corner leaves each tile of queries the blocks before its diagonal.
std::vector<Tiles> tiles_of(const op::AttentionParams& p, const Blocks& blocks) {
  if (p.mask != "padding_causal") {
    return {{blocks, 0, end_of_tiles(p)}};
  }
  std::vector<Tiles> all;
  for (std::int64_t begin = 0; begin < end_of_tiles(p); begin += kTile) {
    const std::int64_t limit = std::min(blocks.limit, begin / blocks.keys * blocks.keys);
    if (all.empty() || all.back().blocks.limit != limit) {
      all.push_back({{blocks.keys, limit}, begin, begin});
    }
    all.back().end = begin + kTile;
  }
  return all;
}

/// The attention of all queries over the keys in whole blocks, with the largest score of each.
op::Values with_padding(const op::FindingRequest& request, const AttentionProblem& problem, const Blocks& blocks) {
  auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  p.max_logit = true;
  p.mask = "padding";  // whole blocks are not masked
  const op::Params params = op::to_params(p);
  std::vector<double> queries, keys;
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    queries.push_back(static_cast<double>(p.sq));
    keys.push_back(static_cast<double>(blocks.whole(problem.lengths(batch))));
  }
  std::vector<op::Operand> inputs(request.inputs.begin(), request.inputs.end());
  for (op::Operand& input : inputs) {
    input.data = input.port == "q_lengths" ? queries.data() : input.port == "kv_lengths" ? keys.data() : input.data;
  }
  return attention_fwd_reference().values(
      {.params = &params, .inputs = std::move(inputs), .sample = *request.sample, .values_only = true});
}

std::span<const double> output_of(const op::Values& values, std::string_view port) {
  return std::ranges::find(values.outputs, port, &op::OutputValues::port)->value.span();
}

/// Nothing if the case does not have it.
std::span<const double> expected_of(const op::FindingRequest& request, std::string_view port) {
  const auto found = std::ranges::find(request.expected->outputs, port, &op::OutputValues::port);
  return found == request.expected->outputs.end() ? std::span<const double>() : found->value.span();
}

std::int64_t first_padded(const Lengths& lengths) {
  return (lengths.queries + kQueries - 1) / kQueries * kQueries;
}

/// Calls body(batch, head, query) for all of these queries in groups of padding whose sequence has whole blocks of keys.
template <class Body>
void for_each_padded(const AttentionProblem& problem, const Tiles& tiles, const Body& body) {
  const op::AttentionParams& p = problem.params();
  for (std::int64_t head = 0; head < p.batches * p.heads; ++head) {
    const Lengths lengths = problem.lengths(head / p.heads);
    const std::int64_t end = std::min(p.sq, tiles.end);
    for (std::int64_t i = std::max(first_padded(lengths), tiles.begin); i < end && tiles.blocks.whole(lengths) > 0;
         ++i) {
      body(head / p.heads, head % p.heads, i);
    }
  }
}

/// The same with body(batch, head, keys) for each head with groups of zeros beyond the last query, which weigh `keys` keys alike.
template <class Body>
void for_each_beyond(const AttentionProblem& problem, const Tiles& tiles, const Body& body) {
  const op::AttentionParams& p = problem.params();
  for (std::int64_t head = 0; head < p.batches * p.heads; ++head) {
    const Lengths lengths = problem.lengths(head / p.heads);
    const std::int64_t first =
        std::max({first_padded(lengths), (p.sq + kQueries - 1) / kQueries * kQueries, tiles.begin});
    if (const std::int64_t keys = tiles.blocks.whole(lengths); first < tiles.end && keys > 0) {
      body(head / p.heads, head % p.heads, keys);
    }
  }
}

double padded_weight(const AttentionProblem& problem, const Tiles& tiles, const op::Values& values) {
  const std::span<const double> scores = output_of(values, "max_logit"), lse = output_of(values, "lse");
  double most = 0;
  for_each_padded(problem, tiles, [&](std::int64_t batch, std::int64_t head, std::int64_t i) {
    const std::size_t at = element_at(op::statistic_place(problem.params(), batch, head), i);
    const double weight = std::exp(scores[at] - lse[at]);
    most = std::isfinite(weight) ? std::fmax(most, weight) : most;
  });
  for_each_beyond(problem, tiles, [&](std::int64_t, std::int64_t head, std::int64_t keys) {
    most = std::fmax(most, 1 / (static_cast<double>(keys) + std::exp(problem.sink(head))));
  });
  return most;
}

double padded_output(const AttentionProblem& problem, const Tiles& tiles, const op::Values& values) {
  const std::int64_t channels = problem.params().value_channels();
  const std::span<const double> o = output_of(values, "o");
  double most = 0;
  for_each_padded(problem, tiles, [&](std::int64_t batch, std::int64_t head, std::int64_t i) {
    const op::HeadPlace place = op::head_place(problem.params(), op::Side::queries, batch, head, channels);
    most = std::fmax(most, largest_magnitude(o.subspan(element_at(place, i), static_cast<std::size_t>(channels))));
  });
  for_each_beyond(problem, tiles, [&](std::int64_t batch, std::int64_t head, std::int64_t keys) {
    most = std::fmax(most, largest_mean_of_values(problem, batch, head, keys));
  });
  return most;
}

/// Whether padding's scores are so large that their roundings to FP32, once more after log2(e), move weights by a tenth.
bool has_vague_weights(const AttentionProblem& problem, const Tiles& tiles, const op::Values& values) {
  constexpr double kRounded = 0x1p-23;  // half an ulp, twice
  constexpr double kMoved = 0.1;
  const std::span<const double> scores = output_of(values, "max_logit");
  double moved = 0;
  for_each_padded(problem, tiles, [&](std::int64_t batch, std::int64_t head, std::int64_t i) {
    const std::size_t at = element_at(op::statistic_place(problem.params(), batch, head), i);
    moved = std::isfinite(scores[at]) ? std::fmax(moved, std::fabs(scores[at]) * kRounded) : moved;
  });
  return moved >= kMoved;
}

/// The largest number that the device stored as an output of some queries of each sequence, and half an ulp of it.
struct LargestStored {
  double value = 0, half_ulp = 0;
};

/// Of the queries [begin(lengths), end(lengths)) of each head.
template <class Begin, class End>
LargestStored largest_stored(const op::Delivered& o, const AttentionProblem& problem, const Begin& begin,
                             const End& end) {
  const op::AttentionParams& p = problem.params();
  const std::int64_t channels = p.value_channels();
  double most = 0;
  for (std::int64_t head = 0; head < p.batches * p.heads; ++head) {
    const op::HeadPlace place = op::head_place(p, op::Side::queries, head / p.heads, head % p.heads, channels);
    const Lengths lengths = problem.lengths(head / p.heads);
    for (std::int64_t i = begin(lengths); i < end(lengths); ++i) {
      const auto row = o.value.subspan(element_at(place, i), static_cast<std::size_t>(channels));
      most = std::fmax(most, largest_magnitude(row));
    }
  }
  return {most, core::ulp(most * o.scale, o.dtype) / o.scale / 2};
}

/// What may be the amax of the codes that were stored, and whether it is that of padding's.
void compare_with_stored(const op::Delivered& o, const AttentionProblem& problem, Amax& amax) {
  const std::int64_t all = problem.params().sq;
  const LargestStored judged = largest_stored(
      o, problem, [](const Lengths&) { return std::int64_t{0}; }, [](const Lengths& of) { return of.queries; });
  const LargestStored padded = largest_stored(o, problem, &first_padded, [all](const Lengths&) { return all; });
  amax.most = judged.value + judged.half_ulp;
  amax.is_stored = std::fabs(amax.got - padded.value) <= padded.half_ulp;
}

/// What blocks of these keys leave in both amaxes.
void weigh_padding(const op::FindingRequest& request, const AttentionProblem& problem, const Blocks& blocks,
                   Amax& weights, Amax& outputs) {
  weights.padded = outputs.padded = 0;
  outputs.is_known = true;
  for (const Tiles& tiles : tiles_of(problem.params(), blocks)) {
    const op::Values values = with_padding(request, problem, tiles.blocks);
    weights.padded = std::fmax(weights.padded, padded_weight(problem, tiles, values));
    outputs.padded = std::fmax(outputs.padded, padded_output(problem, tiles, values));
    outputs.is_known = outputs.is_known && !has_vague_weights(problem, tiles, values);
  }
}

}  // namespace

void explain_padded_amax(const op::FindingRequest& request, const AttentionProblem& problem,
                         std::vector<op::Finding>& findings) {
  const op::AttentionParams& p = problem.params();
  if (!p.has_lengths() || p.is_ragged() || p.has_dropout() || p.bias != "none") {
    return;
  }
  // Two standard deviations of a mean of 128 values whose weights are rounded to E4M3, 0.026 each, if it is 2.5 times as large as
  // such means are; weights are looked at before they are rounded.
  constexpr double kOfRoundedWeights = 0.02;
  constexpr double kMargin = 1.001;
  std::array all = {Amax{"s_amax", 0, largest_magnitude(expected_of(request, "s_amax"))},
                    Amax{"o_amax", kOfRoundedWeights, largest_magnitude(expected_of(request, "o"))}};
  for (Amax& amax : all) {
    const auto delivered = std::ranges::find(request.outputs, amax.port, &op::Delivered::port);
    amax.got = delivered == request.outputs.end() ? 0 : delivered->value[0];
    amax.most = kMargin * amax.expected;
  }
  const auto o = std::ranges::find(request.outputs, "o", &op::Delivered::port);
  if (o != request.outputs.end() && core::is_fp8(o->dtype)) {
    compare_with_stored(*o, problem, all[1]);
  }
  if (std::ranges::none_of(all, &Amax::is_too_large) || !request.sample->all()) {
    return;
  }
  std::array<double, 2> shares{};
  for (const Blocks& blocks : kBlocks) {
    weigh_padding(request, problem, blocks, all[0], all[1]);
    const std::array now = {all[0].share(), all[1].share()};
    shares = now[0] + now[1] > shares[0] + shares[1] ? now : shares;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    add_if_explained(findings, op::kPaddedAmax, Compared{.port = all[i].port}, op::Finding::About::numbers, shares[i],
                     std::string(kCause));
  }
}

}  // namespace numcheck::reference
