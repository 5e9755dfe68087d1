#include "reference/attention_dropout_reuse.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "op/attention_layout.hpp"
#include "op/known_cause.hpp"
#include "reference/attention_dropout_mask.hpp"

namespace numcheck::reference {
namespace {

/// `uses` queries or keys that are `apart` share a draw.
struct Reuse {
  bool of_queries;
  std::int64_t uses, apart;

  /// The draw of a query or key, among those of its row or column.
  [[nodiscard]] std::int64_t draw_of(std::int64_t at) const { return at / (uses * apart) * apart + at % apart; }
  /// No fewer than the draws of so many queries or keys.
  [[nodiscard]] std::int64_t draws(std::int64_t length) const { return (length / (uses * apart) + 1) * apart; }
};

/// A mask in which each draw is there once.
struct Draws {
  op::AttentionParams params;
  std::vector<double> mask;
  double evidence = 0;  ///< log of 1 / (the chance that independent draws are those that weights share with another)
};

/// Nothing if weights that should share a draw differ, or are neither kept nor dropped.
std::optional<Draws> without_repeats(const op::AttentionParams& p, std::span<const double> mask, const Reuse& reuse) {
  Draws once{.params = p};
  once.params.mask = "none";
  once.params.layout = "bshd";
  once.params.packing = "none";
  once.params.window_left = once.params.window_right = -1;
  once.params.sq = reuse.of_queries ? reuse.draws(p.sq) : p.sq;
  once.params.sk = reuse.of_queries ? p.sk : reuse.draws(p.sk);
  const double of_kept = -std::log1p(-p.dropout), of_dropped = -std::log(p.dropout);
  once.mask.assign(static_cast<std::size_t>(p.batches * p.heads * once.params.sq * once.params.sk), kNoDraw);
  const std::vector<std::int64_t> queries = op::sequence_lengths(p, op::Side::queries);
  const std::vector<std::int64_t> keys = op::sequence_lengths(p, op::Side::keys);
  for (std::int64_t head = 0; head < p.batches * p.heads; ++head) {
    const auto batch = static_cast<std::size_t>(head / p.heads);
    for (std::int64_t i = 0; i < queries[batch]; ++i) {
      const op::KeyRange seen = p.visible(i, queries[batch], keys[batch]);
      const std::int64_t row = head * once.params.sq + (reuse.of_queries ? reuse.draw_of(i) : i);
      for (std::int64_t j = seen.begin; j < seen.end; ++j) {
        const double value = mask[static_cast<std::size_t>((head * p.sq + i) * p.sk + j)];
        if (value != 0 && value != 1) {
          return std::nullopt;
        }
        double& draw =
            once.mask[static_cast<std::size_t>(row * once.params.sk + (reuse.of_queries ? j : reuse.draw_of(j)))];
        if (draw != kNoDraw && draw != value) {
          return std::nullopt;
        }
        once.evidence += draw == kNoDraw ? 0 : value == 0 ? of_dropped : of_kept;
        draw = value;
      }
    }
  }
  return once;
}

/// The evidence that independent draws have once in 10^3 masks, of those that failed a gate already, whichever reuse is looked
/// for: by Markov's inequality, as a mask is exp(evidence) times as likely if it has the reuse as if its draws are independent.
double most_by_chance(double reuses) {
  constexpr double kOneIn = 1e3;
  return std::log(kOneIn * reuses);
}

/// Those of fewer uses first.
std::vector<Reuse> possible_reuses() {
  constexpr std::int64_t kFurthest = 64;
  std::vector<Reuse> all;
  for (const std::int64_t uses : {2, 4, 8}) {
    for (std::int64_t apart = 1; apart <= kFurthest; apart *= 2) {
      all.push_back({true, uses, apart});
      all.push_back({false, uses, apart});
    }
  }
  return all;
}

/// A reuse, and the draws without it.
struct Found {
  Reuse reuse{};
  Draws once;
};

/// The one that the mask speaks for most, and those that it speaks for less, if by no more than chance does: several in a small mask.
std::vector<Found> find_reuses(const op::AttentionParams& p, std::span<const double> mask) {
  const std::vector<Reuse> reuses = possible_reuses();
  const double by_chance = most_by_chance(static_cast<double>(reuses.size()));
  std::vector<Found> found;
  double most = 0;
  for (const Reuse& reuse : reuses) {
    if (std::optional<Draws> once = without_repeats(p, mask, reuse); once && once->evidence > by_chance) {
      most = std::max(most, once->evidence);
      found.push_back({reuse, *std::move(once)});
    }
  }
  std::erase_if(found, [&](const Found& reuse) { return most - reuse.once.evidence > by_chance; });
  return found;
}

/// Whether the draws look right, at a level at which an excuse is not had too cheaply: they are fewer than the weights.
bool are_right(const Draws& draws) {
  constexpr double kOneIn = 1e4;
  return std::ranges::all_of(judge_draws(draws.params, draws.mask, kOneIn),
                             [](const op::Finding& gate) { return gate.measured <= gate.limit; });
}

}  // namespace

void explain_reuse(const op::AttentionParams& p, std::span<const double> mask, std::vector<op::Finding>& findings) {
  const bool repeats = std::ranges::any_of(findings, [](const op::Finding& gate) {
    return (gate.name == "repeated draws" || gate.name == "copied draws") && gate.measured > gate.limit;
  });
  if (!repeats) {
    return;
  }
  for (const Found& found : find_reuses(p, mask)) {
    if (are_right(found.once)) {
      const std::string cause =
          fmt::format("each draw of the mask is used for {} {} that are {} apart", found.reuse.uses,
                      found.reuse.of_queries ? "queries" : "keys", found.reuse.apart);
      findings.push_back({.name = std::string(op::kDrawsReused.name),
                          .port = "dropout_mask",
                          .measured = 1,
                          .text = cause + "; counted once each, the draws are right",
                          .cause = cause});
    }
  }
}

}  // namespace numcheck::reference
