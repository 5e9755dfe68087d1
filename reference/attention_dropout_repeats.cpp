#include "reference/attention_dropout_repeats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "op/attention_layout.hpp"
#include "reference/attention_dropout_mask.hpp"
#include "reference/draw_correlation.hpp"

namespace numcheck::reference {
namespace {

/// Which dimension of a box is as long as possible; the others are shortened first.
enum class Whole : std::uint8_t { none, heads, queries, keys };

/// How many heads, queries and keys are compared.
struct Box {
  std::int64_t heads, queries, keys;

  Box(const op::AttentionParams& p, Whole whole) : heads(p.batches * p.heads), queries(p.sq), keys(p.sk) {
    while (heads * queries * keys > static_cast<std::int64_t>(kMostCorrelatedDraws)) {
      std::int64_t& longest = longest_besides(whole);
      longest = (longest + 1) / 2;
    }
  }
  [[nodiscard]] bool operator==(const Box&) const = default;

 private:
  [[nodiscard]] std::int64_t& longest_besides(Whole whole) {
    std::int64_t* longest = nullptr;
    for (const auto& [length, is_whole] : {std::pair{&keys, whole == Whole::keys},
                                           {&queries, whole == Whole::queries},
                                           {&heads, whole == Whole::heads}}) {
      if (!is_whole && *length > 1 && (longest == nullptr || *length > *longest)) {
        longest = length;
      }
    }
    return longest != nullptr ? *longest : whole == Whole::keys ? keys : whole == Whole::queries ? queries : heads;
  }
};

/// The first query and key of a sequence that are in the box: so that its last query that sees a key is, too, with the last
/// keys that it sees.
struct Corner {
  std::int64_t query = 0, key = 0;

  Corner(const op::AttentionParams& p, const Box& box, std::int64_t queries, std::int64_t keys) {
    std::int64_t last = queries - 1;
    while (last > 0 && p.visible(last, queries, keys).size() == 0) {
      --last;
    }
    query = std::max<std::int64_t>(0, last + 1 - box.queries);
    const std::int64_t seen = queries == 0 ? 0 : p.visible(last, queries, keys).end;
    key = std::clamp<std::int64_t>(seen - box.keys, 0, p.sk - box.keys);
  }
};

/// Number n of the box is that of key n % keys, query n / keys % queries and head n / (keys queries), counted from its
/// sequence's corner.
std::vector<float> draws_of(const op::AttentionParams& p, const Box& box, std::span<const double> mask) {
  const auto kept = static_cast<float>(-p.dropout), dropped = static_cast<float>(1 - p.dropout);
  std::vector<float> draws(static_cast<std::size_t>(box.heads * box.queries * box.keys));
  for (std::int64_t head = 0; head < box.heads; ++head) {
    const std::int64_t queries = op::sequence_length(p, op::Side::queries, head / p.heads);
    const std::int64_t keys = op::sequence_length(p, op::Side::keys, head / p.heads);
    const Corner corner(p, box, queries, keys);
    for (std::int64_t i = 0; i < std::min(box.queries, queries - corner.query); ++i) {
      const op::KeyRange seen = p.visible(corner.query + i, queries, keys);
      const std::int64_t row = (head * p.sq + corner.query + i) * p.sk;
      for (std::int64_t j = std::max(seen.begin, corner.key); j < std::min(seen.end, corner.key + box.keys); ++j) {
        const double value = mask[static_cast<std::size_t>(row + j)];
        draws[static_cast<std::size_t>((head * box.queries + i) * box.keys + j - corner.key)] = value == kNoDraw ? 0
                                                                                                : value == 0 ? dropped
                                                                                                             : kept;
      }
    }
  }
  return draws;
}

/// Between two draws of a box.
struct Distance {
  std::int64_t heads = 0, queries = 0, keys = 0;
};

/// Draws that are `lag` numbers apart have up to four distances, as either may be in the next row or head: that of which
/// the products of draws add up to most.
Distance distance_of(const Box& box, std::span<const float> draws, std::int64_t lag) {
  struct Sum {
    Distance distance;
    double products = 0;
  };
  std::array<Sum, 4> sums;
  for (std::int64_t n = 0; n + lag < static_cast<std::int64_t>(draws.size()); ++n) {
    const std::int64_t row = n / box.keys, later = (n + lag) / box.keys;
    const Distance distance{later / box.queries - row / box.queries, later % box.queries - row % box.queries,
                            (n + lag) % box.keys - n % box.keys};
    Sum& sum = sums.at((distance.queries < 0 ? 2U : 0U) + (distance.keys < 0 ? 1U : 0U));
    sum.distance = distance;
    sum.products += static_cast<double>(draws[static_cast<std::size_t>(n)]) *
                    static_cast<double>(draws[static_cast<std::size_t>(n + lag)]);
  }
  return std::ranges::max_element(sums, {}, [](const Sum& sum) { return std::fabs(sum.products); })->distance;
}

std::string counted(std::int64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, std::abs(number) == 1 ? one : many);
}

op::Finding repeats_in(const op::AttentionParams& p, const Box& box, std::span<const double> mask, double one_in) {
  op::Finding finding{.name = "repeated draws", .port = "dropout_mask"};
  const std::vector<float> draws = draws_of(p, box, mask);
  if (std::ranges::all_of(draws, [](float x) { return x == 0; })) {
    return finding;
  }
  const DrawCorrelation found = draw_correlation(draws, p.dropout, one_in);
  const Distance distance = distance_of(box, draws, found.lag);
  finding.measured = found.measured;
  finding.limit = found.limit;
  finding.text = fmt::format(
      "the largest correlation, of weights that are {} apart",
      fmt::join(std::array{counted(distance.heads, "head", "heads"), counted(distance.queries, "query", "queries"),
                           counted(distance.keys, "key", "keys")},
                ", "));
  return finding;
}

}  // namespace

std::vector<op::Finding> judge_repeats(const op::AttentionParams& p, std::span<const double> mask, double one_in) {
  std::vector<Box> boxes;
  for (const Whole whole : {Whole::none, Whole::heads, Whole::queries, Whole::keys}) {
    const Box box(p, whole);
    if (std::ranges::find(boxes, box) == boxes.end()) {
      boxes.push_back(box);
    }
  }
  std::vector<op::Finding> of_boxes(boxes.size());
  core::parallel_for(boxes.size(), [&](std::size_t n) { of_boxes[n] = repeats_in(p, boxes[n], mask, one_in); });
  std::vector<op::Finding> worst;
  for (op::Finding& found : of_boxes) {
    if (std::isfinite(found.limit) &&
        (worst.empty() || found.measured * worst[0].limit > worst[0].measured * found.limit)) {
      worst = {std::move(found)};
    }
  }
  return worst;
}

}  // namespace numcheck::reference
