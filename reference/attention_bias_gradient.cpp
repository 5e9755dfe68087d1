#include "reference/attention_bias_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "reference/attention_gradient_blocks.hpp"
#include "reference/attention_gradient_sums.hpp"
#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference {
namespace {

using Of = GradientFacts::Of;

/// sums[first + n] += terms[n]
void add_at(std::span<const double> terms, std::ptrdiff_t first, std::vector<double>& sums) {
  std::transform(terms.begin(), terms.end(), sums.begin() + first, sums.begin() + first, std::plus<>());
}

/// Stores a block of queries of one head.
void store_block(const AttentionGradients& g, std::int64_t index, std::int64_t block, const StatisticFacts& statistics,
                 GradientOutput& dbias) {
  const op::AttentionParams& p = g.params();
  const Positions all = span_at(block, p.sq);
  const bool before_scale = p.bias == "pre_scale";
  GradientSums sums(before_scale ? Of::bias : Of::capped_bias, g, all.size(), p.sk, statistics);
  std::vector<double> saturation(before_scale && p.softcap != 0 ? sums.squared.size() : 0), scored(sums.squared.size());
  std::vector<double> dots(static_cast<std::size_t>(all.size())), dot_seconds(dots.size());
  GradientTile tile(g);
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    const GradientHead& head = g.head(batch, index);
    const Positions queries{all.begin, std::clamp(head.lengths.queries, all.begin, all.end)};
    if (queries.size() == 0) {
      continue;
    }
    for (std::int64_t i = queries.begin; i < queries.end && head.errors; ++i) {
      const auto at = static_cast<std::size_t>(i), row = static_cast<std::size_t>(i - all.begin);
      dots[row] += head.dot[at] * head.dot[at];
      dot_seconds[row] += head.errors->dot_second[at];
    }
    const GradientTile::Visit visit = visitor(g, [&](const PairRow& pairs) {
      sums.add(head, pairs, static_cast<std::size_t>(pairs.query - all.begin));
      const auto first = static_cast<std::ptrdiff_t>((pairs.query - all.begin) * p.sk + pairs.keys.begin);
      add_at(sums.facts.spread(), first, sums.weighted);
      add_at(sums.facts.scored(), first, scored);
      if (!saturation.empty()) {
        add_at(sums.facts.saturation(), first, saturation);
      }
    });
    for_each_span(head.lengths.keys, [&](const Positions& keys) {
      if (!tile.load(head, queries, keys, visit)) {
        return;
      }
      const std::span<const double> part = before_scale ? tile.dt() : tile.ds();
      for (std::int64_t n = 0; n < queries.size() * keys.size(); ++n) {
        const double x = part[static_cast<std::size_t>(n)];
        const auto at = static_cast<std::size_t>(n / keys.size() * p.sk + keys.begin + n % keys.size());
        sums.value[at] += x;
        if (!sums.squared.empty()) {
          sums.squared[at] += x * x;
        }
      }
    });
  }
  const BlockPlace place{{index * p.sq * p.sk, p.sk}, index * p.sq, all, p.sk};
  const double factor = before_scale ? g.problem().factor() : 1;
  store(dbias, place, sums, factor);
  store_roots(dbias, tolerance::kSaturation, place, saturation, factor);
  store_roots(dbias, tolerance::kScored, place, scored, factor);
  for (std::size_t row = 0; row < dots.size() && !dbias.values_only; ++row) {
    const bool equal = GradientFacts::are_equal_values(p, std::sqrt(dots[row]), dot_seconds[row]);
    dbias.facts[static_cast<std::size_t>(tolerance::GradientFact::equal_values)]
               [static_cast<std::size_t>(place.row + all.begin) + row] = equal ? 1.0F : 0.0F;
  }
}

}  // namespace

op::OutputValues bias_gradient(const AttentionGradients& g, const StatisticFacts& statistics) {
  const op::AttentionParams& p = g.params();
  GradientOutput dbias("dbias", p.heads * p.sq, p.heads * p.sq * p.sk, g.values_only());
  dbias.add_element_fact(tolerance::kWeightRatio);
  dbias.add_element_fact(tolerance::kSpreadRatio);
  dbias.add_element_fact(tolerance::kScored);
  if (p.bias == "pre_scale" && p.softcap != 0) {
    dbias.add_element_fact(tolerance::kSaturation);
  }
  for_each_block({0, p.heads}, p.sq,
                 [&](std::int64_t h, std::int64_t block) { store_block(g, h, block, statistics, dbias); });
  return std::move(dbias).take();
}

}  // namespace numcheck::reference
