#include "reference/attention_dropout_copies.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "op/attention_layout.hpp"
#include "reference/attention_dropout_mask.hpp"
#include "reference/copied_draws.hpp"

namespace numcheck::reference {
namespace {

/// A matrix of queries and keys for every head, the sequences one after another.
std::vector<DrawMatrix> draws_of(const op::AttentionParams& p, std::span<const double> mask) {
  const std::vector<std::int64_t> queries = op::sequence_lengths(p, op::Side::queries);
  const std::vector<std::int64_t> keys = op::sequence_lengths(p, op::Side::keys);
  std::vector<DrawMatrix> heads(static_cast<std::size_t>(p.batches * p.heads), DrawMatrix(p.sq, p.sk));
  core::parallel_for(heads.size(), [&](std::size_t n) {
    const auto head = static_cast<std::int64_t>(n);
    const auto batch = static_cast<std::size_t>(head / p.heads);
    for (std::int64_t i = 0; i < queries[batch]; ++i) {
      const op::KeyRange seen = p.visible(i, queries[batch], keys[batch]);
      const double* const row = mask.data() + (head * p.sq + i) * p.sk;
      for (std::int64_t j = seen.begin; j < seen.end; ++j) {
        if (row[j] != kNoDraw) {
          heads[n].add(i, j, row[j] == 0);
        }
      }
    }
  });
  return heads;
}

std::string range_of(const char* of, std::int64_t first, std::int64_t length, std::int64_t all) {
  return fmt::format("{} {} to {}", of, first, std::min(first + length, all) - 1);
}

std::string name_of(const op::AttentionParams& p, const DrawRegion& region) {
  const bool is_row = region.shape == DrawRegion::Shape::row, is_column = region.shape == DrawRegion::Shape::column;
  return fmt::format(
      "head {}, {}, {}", region.matrix,
      is_row ? fmt::format("query {}", region.row) : range_of("queries", region.row, region.length, p.sq),
      is_column ? fmt::format("key {}", region.column) : range_of("keys", region.column, region.length, p.sk));
}

}  // namespace

std::vector<op::Finding> judge_copies(const op::AttentionParams& p, std::span<const double> mask, double one_in) {
  const std::optional<CopiedDraws> copy = copied_draws(draws_of(p, mask), p.dropout, one_in);
  if (!copy) {
    return {};
  }
  const std::string text =
      copy->measured == 0 ? "no query, key or tile is a copy of another"
                          : fmt::format("{} weights of {} are those of {}, as independent ones are once in 10^{:.0f}",
                                        copy->draws, name_of(p, copy->second), name_of(p, copy->first), copy->measured);
  return {
      {.name = "copied draws", .port = "dropout_mask", .measured = copy->measured, .limit = copy->limit, .text = text}};
}

}  // namespace numcheck::reference
