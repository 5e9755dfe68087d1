// What the error model of attention has to know of a query: tolerance::AttentionFact.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "reference/attention_block.hpp"
#include "reference/attention_kernels.hpp"

namespace numcheck::reference {
namespace {

using tolerance::AttentionFact;

constexpr double kDeviations = 6;  // hardly an error is larger than so many of its own: tolerance::LargestError
constexpr double kLost = 1e-60;    // keys weigh nothing beside such a sink, and squares of their sum underflow

double square(double x) {
  return x * x;
}

}  // namespace

ScoreRange AttentionBlock::score_with_copies(std::int64_t i, const op::KeyRange& keys, std::span<double> products) {
  const AttentionProblem& problem = head_.problem;
  if (p_.bias != "none") {
    raw_.assign(products.begin(), products.end());
  }
  ScoreRange range = problem.score_inside(head_.index, first_ + i, keys, products);
  if (problem.adds_bias_last()) {
    inner_.assign(products.begin(), products.end());
    range = problem.add_last_bias(head_.index, head_.lengths, first_ + i, keys, products);
  }
  biased_.assign(products.begin(), products.end());
  return range;
}

void AttentionBlock::add_facts(std::int64_t i, Row& row, std::span<const double> weights,
                               std::int64_t first_key) const {
  // t is the score before a bias, the score itself where there is none. Of the cap it is at most that, as its error becomes
  // smaller with the slope; but a bias that is added before may cancel a t whose error is all there.
  const bool biased = p_.bias != "none";
  const WeighedKeys keys{.count = weights.size(),
                         .weights = weights.data(),
                         .scores = biased_.data(),
                         .inner = head_.problem.adds_bias_last() ? inner_.data() : biased_.data(),
                         .products = biased ? raw_.data() : biased_.data(),
                         .key_squares = head_.key_squares.data() + first_key,
                         .factor = biased ? head_.problem.factor() : 1,
                         .cap = p_.bias == "pre_scale" ? 0 : p_.softcap};
  const WeightSums sums = attention_kernels().sums(keys);
  const RoundingSums rounded = attention_kernels().rounding_sums(keys);
  row.keys += sums.keys;
  row.excess += sums.excess;
  row.excess2 += sums.excess2;
  row.squares += sums.squares;
  row.score += sums.score;
  row.score2 += sums.score2;
  row.inner2 += rounded.inner2;
  row.power2 += rounded.power2;
  row.rounded1 += rounded.rounded1;
  row.rounded2 += rounded.rounded2;
  row.rounded3 += rounded.rounded3;
  row.reach = std::max(row.reach, sums.reach);
  for (std::size_t n = 0; measures_lengths_ && n < weights.size(); ++n) {
    const std::size_t at = static_cast<std::size_t>(weights.data() - scores_.data()) + n;
    row.products2 += weights[n] == 0 ? 0 : weights[n] * square(lengths_[at]);
    row.signs += signs_.empty() ? 0 : weights[n] * signs_[at];
  }
  note_contenders(i, row, first_key);
}

void AttentionBlock::note_contenders(std::int64_t i, Row& row, std::int64_t first_key) const {
  const double* q = head_.queries.data + (first_ + i) * head_.queries.stride;
  const double length = std::sqrt(std::inner_product(q, q + p_.d, q, 0.0)) * std::fabs(head_.problem.factor());
  const double largest = length * std::sqrt(head_.largest_square);
  const auto add = [&](Contenders& contenders, double swing) {
    for (std::size_t n = 0; n < biased_.size(); ++n) {
      const double key = std::sqrt(head_.key_squares[static_cast<std::size_t>(first_key) + n]);
      contenders.add(biased_[n], swing * std::max(length * key, std::fabs(biased_[n])));
    }
  };
  if (swing_ != 0) {
    add(row.contenders, swing_);
    return;
  }
  for (const auto& [contenders, swing] :
       {std::pair(&row.in_fp32, swing_in_fp32_), std::pair(&row.in_tf32, swing_in_tf32_)}) {
    if (swing * largest > Contenders::kMatters || (swing != 0 && p_.bias != "none")) {
      add(*contenders, swing);
    }
  }
}

double AttentionBlock::fact(std::int64_t i, AttentionFact which) const {
  const Row& row = rows_[static_cast<std::size_t>(i)];
  const double* q = head_.queries.data + (first_ + i) * head_.queries.stride;
  const double factor = head_.problem.factor();
  double sum = 0;
  switch (which) {
    case AttentionFact::score_magnitude:
      for (std::int64_t c = 0; c < p_.d; ++c) {
        sum += square(q[c]);
      }
      return row.own == 0 ? 0 : std::fabs(factor) * std::sqrt(sum * row.keys / row.own);
    case AttentionFact::score_second: {
      double fourth = 0, length = 0;
      for (std::int64_t c = 0; c < p_.d; ++c) {
        sum += square(q[c]) * head_.channel_squares[static_cast<std::size_t>(c)];
        length += square(q[c]);
        fourth += square(square(q[c]));
      }
      const double along = length == 0 ? 0 : fourth / square(length);
      const double longer = row.own == 0 || head_.mean_square == 0 ? 1 : row.keys / row.own / head_.mean_square;
      return square(factor) * sum * std::max(1.0, longer) + along * fact(i, AttentionFact::score_square);
    }
    case AttentionFact::score_square:
      return row.own == 0 ? 0 : row.squares / row.own;
    case AttentionFact::argument: {
      // max(|t|, |s|) + m - s is x + m, where the sums of x and its square need no second pass when m is known.
      const double moment = row.excess2 + 2 * row.largest * row.excess + square(row.largest) * row.own;
      return row.own == 0 ? 0 : std::sqrt(std::max(0.0, moment / row.own));
    }
    case AttentionFact::largest_weight:
      return largest_weight(i);
    case AttentionFact::equal_weight:
      return head_.problem.dropout().is_none() || row.sum == 0 ? largest_weight(i)
                                                               : std::max(largest_weight(i), row.equal / row.sum);
    case AttentionFact::score_spread:
      return row.own == 0 ? 0 : std::sqrt(std::max(0.0, row.score2 / row.own - square(row.score / row.own)));
    case AttentionFact::query_spread: {
      const bool all = p_.softcap == 0 || row.own == 0 || std::isinf(head_.query_spread);
      const double left = all ? 1 : std::max(0.0, 1 - row.squares / (row.own * square(p_.softcap)));
      return head_.query_spread * left;
    }
    case AttentionFact::keys:
      return static_cast<double>(row.visible.size());
    case AttentionFact::product_sum:
      return !measures_lengths_ ? fact(i, AttentionFact::score_magnitude)
             : row.own == 0     ? 0
                                : std::fabs(factor) * std::sqrt(row.products2 / row.own);
    case AttentionFact::score_common:
      for (std::int64_t c = 0; c < p_.d && sums_keys_; ++c) {
        const double key = row.own == 0 ? 0 : sums_.keys[static_cast<std::size_t>(i * p_.d + c)] / row.own;
        sum += square(q[c] * key * factor);
      }
      return sum;
    case AttentionFact::net_signs:
      return row.own == 0 ? 0 : std::fabs(row.signs / row.own);
    case AttentionFact::inner_square:
      return row.own == 0 ? 0 : row.inner2 / row.own;
    case AttentionFact::scored_square:
      return row.own == 0 ? 0 : row.score2 / row.own;
    case AttentionFact::largest_score:
      return row.reach;
    case AttentionFact::squared_weights:
      return row.rounded1 == 0 || row.own < kLost ? 0 : row.rounded2 / (row.own * row.rounded1);
    case AttentionFact::scatter:
      return scatter(row);
    case AttentionFact::sink: {
      const double sink = head_.problem.sink(head_.index);
      return sink == -std::numeric_limits<double>::infinity() ? 0 : std::fabs(sink) * std::exp(sink - lse(i));
    }
    case AttentionFact::sink_share: {
      const double sink = head_.problem.sink(head_.index);
      return sink == -std::numeric_limits<double>::infinity() ? 0 : std::exp(sink - lse(i));
    }
    case AttentionFact::value_size:
      return head_.problem.dropout().scale() * std::sqrt(*std::ranges::max_element(head_.value_squares));
    case AttentionFact::value_range:
      return fact(i, AttentionFact::sink_share) == 0 && head_.problem.dropout().is_none()
                 ? head_.value_range
                 : head_.problem.dropout().scale() * head_.range_from_zero;
    case AttentionFact::least_weight:
      return row.least;
    case AttentionFact::contest:
      return contest(row.in_fp32);
    case AttentionFact::tf32_contest:
      return contest(row.in_tf32);
    case AttentionFact::count:
      break;
  }
  return 0;
}

double AttentionBlock::contest(Contenders keys) const {
  keys.add(head_.problem.sink(head_.index), 0);
  const double swing = keys.swing() > Contenders::kMatters ? keys.swing() : 0;
  return keys.is_close(tolerance::kSettledMargin) ? swing : -swing;
}

double AttentionBlock::rival_distance(std::int64_t i, double score) const {
  const double* q = head_.queries.data + (first_ + i) * head_.queries.stride;
  double sum = 0;
  for (std::int64_t c = 0; c < p_.d; ++c) {
    sum += square(q[c]);
  }
  return 0x1p-9 * std::fabs(head_.problem.factor()) * std::sqrt(sum * head_.largest_square) +
         0x1p-18 * std::fabs(score);
}

void AttentionBlock::note_largest(std::int64_t i, std::span<const double> scores, std::int64_t first_key) {
  Row& row = rows_[static_cast<std::size_t>(i)];
  if (row.has_nan) {
    return;
  }
  if (!head_.values_only) {
    note_upsets(i, scores, first_key);
  }
  const auto largest = std::ranges::max_element(scores);
  const double top = std::max(row.top, *largest), distance = head_.values_only ? 0 : rival_distance(i, top);
  row.rivals = top - row.top > distance ? 0 : row.rivals;
  row.rivals += static_cast<double>(std::ranges::count_if(scores, [&](double s) { return s >= top - distance; }));
  if (*largest > row.top) {
    row.top_key = first_key + (largest - scores.begin());
  }
}

void AttentionBlock::note_upsets(std::int64_t i, std::span<const double> scores, std::int64_t first_key) {
  constexpr double kRoundedToTf32 = 0.6 * 0x1p-11, kSummed = 0x1p-23;
  constexpr double kRoundings = 2.5, kBf16 = 0x1p-9, kFp16 = 0x1p-12;  // six roundings, perhaps alike: sqrt(6)
  Row& row = rows_[static_cast<std::size_t>(i)];
  const double* q = head_.queries.data + (first_ + i) * head_.queries.stride;
  const double channels = head_.uneven ? 1 : static_cast<double>(p_.d);
  const double size = std::fabs(head_.problem.factor()) * std::sqrt(std::inner_product(q, q + p_.d, q, 0.0) / channels);
  for (std::size_t n = 0; n < scores.size(); ++n) {
    const double products = size * std::sqrt(head_.key_squares[static_cast<std::size_t>(first_key) + n]);
    if (!std::isfinite(products)) {
      continue;
    }
    row.upset = std::max(row.upset, kSummed * products + scores[n] / kDeviations);
    row.tf32_upset = std::max(row.tf32_upset, kRoundedToTf32 * products + scores[n] / kDeviations);
    const double inner = head_.problem.adds_bias_last() ? inner_[n] : scores[n];
    const double product = p_.bias == "pre_scale" ? head_.problem.factor() * raw_[n] : 0;
    const double rounded = kRoundings * std::max({std::fabs(scores[n]), std::fabs(inner), std::fabs(product)});
    if (std::isfinite(rounded)) {
      row.bf16_upset = std::max(row.bf16_upset, kBf16 * rounded + scores[n] / kDeviations);
      row.fp16_upset = std::max(row.fp16_upset, kFp16 * rounded + scores[n] / kDeviations);
    }
  }
}

double AttentionBlock::capped_argument(std::int64_t i, std::int64_t key, double product) const {
  if (p_.softcap == 0) {
    return 0;
  }
  if (p_.bias != "pre_scale") {
    return std::min(std::fabs(head_.problem.factor() * product), double{std::numeric_limits<float>::max()});
  }
  double slope = 1;
  head_.problem.slopes(head_.index, first_ + i, {key, key + 1}, std::span(&product, 1), std::span(&slope, 1));
  constexpr double kSaturated = 0x1p-50;  // no less is left of 1 - tanh^2
  return p_.softcap * std::atanh(std::sqrt(1 - std::max(slope, kSaturated)));
}

AttentionBlock::MaxLogitFacts AttentionBlock::max_facts(std::int64_t i) const {
  using tolerance::MaxLogitFact;
  const Row& row = rows_[static_cast<std::size_t>(i)];
  MaxLogitFacts facts{};
  if (row.top_key < 0) {
    return facts;
  }
  const double* q = head_.queries.data + (first_ + i) * head_.queries.stride;
  const double* k = head_.keys.data + row.top_key * head_.keys.stride;
  const double factor = std::fabs(head_.problem.factor());
  double sum = 0, magnitude = 0, second = 0, length = 0;
  for (std::int64_t c = 0; c < p_.d; ++c) {
    sum += q[c] * k[c];
    magnitude += std::fabs(q[c] * k[c]);
    second += square(q[c] * k[c]);
    length += square(q[c]);
  }
  const double product = factor * std::fabs(sum);
  const auto set = [&facts](MaxLogitFact which, double x) { facts[static_cast<std::size_t>(which)] = x; };
  set(MaxLogitFact::products, factor * std::sqrt(length * head_.largest_square));
  set(MaxLogitFact::largest, row.reach);
  set(MaxLogitFact::magnitude, factor * magnitude);
  set(MaxLogitFact::second, factor * std::sqrt(second));  // squares may be less than FP32 holds
  set(MaxLogitFact::product, product);
  set(MaxLogitFact::score, std::fabs(row.top));
  set(MaxLogitFact::capped, capped_argument(i, row.top_key, sum));
  set(MaxLogitFact::rivals, row.rivals);
  set(MaxLogitFact::upset, std::max(0.0, row.upset - row.top / kDeviations));
  set(MaxLogitFact::tf32_upset, std::max(0.0, row.tf32_upset - row.top / kDeviations));
  set(MaxLogitFact::bf16_upset, std::max(0.0, row.bf16_upset - row.top / kDeviations));
  set(MaxLogitFact::fp16_upset, std::max(0.0, row.fp16_upset - row.top / kDeviations));
  return facts;
}

double AttentionBlock::largest_weight(std::int64_t i) const {
  const Row& row = rows_[static_cast<std::size_t>(i)];
  return row.sum == 0 ? 0 : std::exp(row.top - lse(i));
}

double AttentionBlock::scatter(const Row& row) {
  constexpr double kOneKey = 1e-12;  // 1 - S C' from here on is rounding
  if (row.rounded1 == 0 || row.own < kLost) {
    return 0;
  }
  const double of_keys = row.own / row.sum;
  const double together = row.power2 / square(row.own);
  const double second = row.rounded2 / (row.own * row.rounded1),
               third = row.rounded3 / (square(row.own) * row.rounded1);
  const double rest = 1 - of_keys * together;
  const double moved = (1 + square(of_keys) * together) * second - 2 * of_keys * third;
  return rest < kOneKey ? 0 : of_keys * std::max(0.0, moved) / rest;
}

}  // namespace numcheck::reference
