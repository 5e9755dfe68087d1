#include "reference/attention_dropout_repeats.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "op/attention_layout.hpp"
#include "reference/draw_correlation.hpp"

namespace numcheck::reference {
namespace {

/// Some heads, and some queries and keys of each.
struct Box {
  std::int64_t heads, queries, keys;
  std::int64_t first_query = 0, first_key = 0;

  /// The last query, and the last keys that it sees: with a causal mask or a window, corners see nothing.
  explicit Box(const op::AttentionParams& p) : heads(p.batches * p.heads), queries(p.sq), keys(p.sk) {
    constexpr std::int64_t kFew = 64;
    while (heads * queries * keys > static_cast<std::int64_t>(kMostCorrelatedDraws)) {
      std::int64_t& longest = std::max(queries, keys) <= kFew ? heads : queries >= keys ? queries : keys;
      longest = (longest + 1) / 2;
    }
    const std::int64_t seen = p.visible(p.sq - 1, p.sq, p.sk).end;
    first_query = p.sq - queries;
    first_key = std::clamp<std::int64_t>(seen - keys, 0, p.sk - keys);
  }
};

/// Number n of the box is that of key n % keys, query n / keys % queries and head n / (keys queries).
std::vector<float> draws_of(const op::AttentionParams& p, const Box& box, std::span<const double> mask) {
  const auto kept = static_cast<float>(-p.dropout), dropped = static_cast<float>(1 - p.dropout);
  std::vector<float> draws(static_cast<std::size_t>(box.heads * box.queries * box.keys));
  for (std::int64_t head = 0; head < box.heads; ++head) {
    const std::int64_t queries = op::sequence_length(p, op::Side::queries, head / p.heads);
    const std::int64_t keys = op::sequence_length(p, op::Side::keys, head / p.heads);
    for (std::int64_t i = 0; i < std::min(box.queries, queries - box.first_query); ++i) {
      const op::KeyRange seen = p.visible(box.first_query + i, queries, keys);
      const std::int64_t row = (head * p.sq + box.first_query + i) * p.sk;
      for (std::int64_t j = std::max(seen.begin, box.first_key); j < std::min(seen.end, box.first_key + box.keys);
           ++j) {
        draws[static_cast<std::size_t>((head * box.queries + i) * box.keys + j - box.first_key)] =
            mask[static_cast<std::size_t>(row + j)] == 0 ? dropped : kept;
      }
    }
  }
  return draws;
}

/// The quotient that leaves the remainder of the smallest magnitude, which stays in `lag`.
std::int64_t nearest_multiple(std::int64_t& lag, std::int64_t of) {
  const std::int64_t times = (2 * lag + of) / (2 * of);
  lag -= times * of;
  return times;
}

}  // namespace

std::vector<op::Finding> judge_repeats(const op::AttentionParams& p, std::span<const double> mask) {
  const Box box(p);
  const std::vector<float> draws = draws_of(p, box, mask);
  if (std::ranges::all_of(draws, [](float x) { return x == 0; })) {
    return {};
  }
  const DrawCorrelation found = draw_correlation(draws, p.dropout);
  std::int64_t keys = found.lag;
  const std::int64_t heads = nearest_multiple(keys, box.queries * box.keys);
  const std::int64_t queries = nearest_multiple(keys, box.keys);
  return {{.name = "repeated draws",
           .port = "dropout_mask",
           .measured = found.measured,
           .limit = found.limit,
           .text = fmt::format("correlation of weights {} heads, {} queries and {} keys apart, the largest of all",
                               heads, queries, keys)}};
}

}  // namespace numcheck::reference
