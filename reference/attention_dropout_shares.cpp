#include "reference/attention_dropout_shares.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "op/attention_layout.hpp"
#include "reference/attention_dropout_mask.hpp"
#include "reference/chance.hpp"

namespace numcheck::reference {
namespace {

/// Weights that are seen, and those of them that are dropped.
struct Count {
  double seen = 0;
  double dropped = 0;
};

/// Some weights of every head: queries and keys [begin, end).
struct Region {
  std::int64_t first_head, end_head;
  op::KeyRange queries, keys;
};

class SharesOfMask {
 public:
  SharesOfMask(const op::AttentionParams& p, std::span<const double> mask)
      : p_(p),
        mask_(mask),
        queries_(op::sequence_lengths(p, op::Side::queries)),
        keys_(op::sequence_lengths(p, op::Side::keys)) {}

  [[nodiscard]] std::vector<Count> of_heads() const {
    std::vector<Count> counts(static_cast<std::size_t>(heads()));
    core::parallel_for(counts.size(), [&](std::size_t n) {
      const auto head = static_cast<std::int64_t>(n);
      add({head, head + 1, {0, p_.sq}, {0, p_.sk}}, std::span(&counts[n], 1), Each::region);
    });
    return counts;
  }

  [[nodiscard]] std::vector<Count> of_queries() const {
    std::vector<Count> counts(static_cast<std::size_t>(p_.sq));
    core::parallel_for(counts.size(), [&](std::size_t n) {
      const auto query = static_cast<std::int64_t>(n);
      add({0, heads(), {query, query + 1}, {0, p_.sk}}, std::span(&counts[n], 1), Each::region);
    });
    return counts;
  }

  [[nodiscard]] std::vector<Count> of_keys() const {
    constexpr std::size_t kChunk = 512;  // keys whose rows are read together
    std::vector<Count> counts(static_cast<std::size_t>(p_.sk));
    core::parallel_chunks(counts.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
      add({0, heads(), {0, p_.sq}, {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)}},
          std::span(counts).subspan(begin, end - begin), Each::key);
    });
    return counts;
  }

  /// Query i of head h is number h sq + i.
  [[nodiscard]] std::vector<Count> of_rows() const {
    std::vector<Count> counts(static_cast<std::size_t>(heads() * p_.sq));
    core::parallel_for(static_cast<std::size_t>(heads()), [&](std::size_t n) {
      const auto head = static_cast<std::int64_t>(n);
      for (std::int64_t i = 0; i < p_.sq; ++i) {
        add({head, head + 1, {i, i + 1}, {0, p_.sk}}, std::span(&counts[static_cast<std::size_t>(head * p_.sq + i)], 1),
            Each::region);
      }
    });
    return counts;
  }

  /// Tiles of kTile queries and keys, row by row and head by head.
  [[nodiscard]] std::vector<Count> of_tiles() const {
    const std::int64_t down = tiles_of(p_.sq), across = tiles_of(p_.sk);
    std::vector<Count> counts(static_cast<std::size_t>(heads() * down * across));
    core::parallel_for(static_cast<std::size_t>(heads() * down), [&](std::size_t n) {
      const std::int64_t head = static_cast<std::int64_t>(n) / down,
                         first = static_cast<std::int64_t>(n) % down * kTile;
      const std::span<Count> row = std::span(counts).subspan(n * static_cast<std::size_t>(across));
      add({head, head + 1, {first, first + kTile}, {0, p_.sk}}, row.first(static_cast<std::size_t>(across)),
          Each::tile);
    });
    return counts;
  }

  static constexpr std::int64_t kTile = 16;
  [[nodiscard]] static std::int64_t tiles_of(std::int64_t length) { return (length + kTile - 1) / kTile; }

 private:
  enum class Each : std::uint8_t { region, key, tile };

  [[nodiscard]] std::int64_t heads() const { return p_.batches * p_.heads; }

  /// Counts a region as a whole, or each of its keys, or of its tiles of keys.
  void add(const Region& region, std::span<Count> counts, Each each) const {
    for (std::int64_t head = region.first_head; head < region.end_head; ++head) {
      const auto batch = static_cast<std::size_t>(head / p_.heads);
      for (std::int64_t i = region.queries.begin; i < std::min(region.queries.end, queries_[batch]); ++i) {
        const op::KeyRange seen = p_.visible(i, queries_[batch], keys_[batch]);
        const std::int64_t end = std::min(seen.end, region.keys.end);
        const double* const row = mask_.data() + (head * p_.sq + i) * p_.sk;
        for (std::int64_t j = std::max(seen.begin, region.keys.begin); j < end; ++j) {
          if (row[j] == kNoDraw) {
            continue;
          }
          const std::int64_t place = j - region.keys.begin;
          const std::int64_t at = each == Each::key ? place : each == Each::tile ? place / kTile : 0;
          Count& count = counts[static_cast<std::size_t>(at)];
          count.seen += 1;
          count.dropped += row[j] == 0 ? 1 : 0;
        }
      }
    }
  }

  const op::AttentionParams& p_;
  std::span<const double> mask_;
  std::vector<std::int64_t> queries_, keys_;
};

/// `named`: what number n is called.
template <class Named>
void add_furthest(std::vector<op::Finding>& findings, std::string_view of, std::span<const Count> counts,
                  double probability, double one_in, const Named& named) {
  op::Finding furthest{.name = fmt::format("dropped share of a {}", of), .port = "dropout_mask"};
  bool any = false;
  for (std::size_t n = 0; n < counts.size(); ++n) {
    if (counts[n].seen == 0) {
      continue;
    }
    const double share = counts[n].dropped / counts[n].seen, measured = std::fabs(share - probability);
    const double limit = share_error(probability, counts[n].seen, static_cast<double>(counts.size()), one_in);
    if (!any || measured * furthest.limit > furthest.measured * limit) {
      any = true;
      furthest.measured = measured;
      furthest.limit = limit;
      furthest.text = fmt::format("{:.6f} of {:.0f} weights of {} are dropped, expected {:.6f}", share, counts[n].seen,
                                  named(static_cast<std::int64_t>(n)), probability);
    }
  }
  if (any) {
    findings.push_back(std::move(furthest));
  }
}

}  // namespace

std::vector<op::Finding> judge_shares(const op::AttentionParams& p, std::span<const double> mask, double one_in) {
  const SharesOfMask shares(p, mask);
  std::vector<op::Finding> findings;
  const auto numbered = [](std::string_view of) {
    return [of](std::int64_t n) { return fmt::format("{} {}", of, n); };
  };
  add_furthest(findings, "head", shares.of_heads(), p.dropout, one_in, numbered("head"));
  add_furthest(findings, "query", shares.of_queries(), p.dropout, one_in, numbered("query"));
  add_furthest(findings, "key", shares.of_keys(), p.dropout, one_in, numbered("key"));
  add_furthest(findings, "row", shares.of_rows(), p.dropout, one_in,
               [&p](std::int64_t n) { return fmt::format("query {} of head {}", n % p.sq, n / p.sq); });
  const std::int64_t down = SharesOfMask::tiles_of(p.sq), across = SharesOfMask::tiles_of(p.sk);
  add_furthest(findings, "tile", shares.of_tiles(), p.dropout, one_in, [down, across](std::int64_t n) {
    return fmt::format("head {}, queries from {}, keys from {},", n / (down * across),
                       n / across % down * SharesOfMask::kTile, n % across * SharesOfMask::kTile);
  });
  return findings;
}

}  // namespace numcheck::reference
