#include "reference/attention_gradient_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference {

using Of = GradientFacts::Of;

GradientOutput::GradientOutput(std::string_view port, std::int64_t rows, std::int64_t elements, bool only_values)
    : out(port, static_cast<std::size_t>(elements), only_values), values_only(only_values) {
  for (std::size_t f = 0; f < static_cast<std::size_t>(tolerance::GradientFact::count) && !only_values; ++f) {
    std::ranges::fill(facts.emplace_back(static_cast<std::size_t>(rows)).span(), 0.0F);  // rows beyond their sequence
  }
}

GradientOutput::GradientOutput(std::string_view port, const AttentionProblem& problem, op::Side side,
                               std::int64_t channels, bool only_values)
    : GradientOutput(
          port, problem.params().batches * op::heads_of(problem.params(), side) * op::longest(problem.params(), side),
          op::tokens(problem.params(), side) * op::heads_of(problem.params(), side) * channels, only_values) {
  if (problem.params().is_ragged()) {
    out.leave_out(op::unused_elements(problem.params(), side, channels, problem.all_lengths(side)));
  }
}

std::span<const float> GradientOutput::fact(tolerance::GradientFact which) const {
  return facts.empty() ? std::span<const float>() : facts[static_cast<std::size_t>(which)].span();
}

void GradientOutput::add_element_fact(std::size_t which) {
  if (!values_only) {
    facts.resize(std::max(facts.size(), which + 1));
    facts[which] = core::Buffer<float>(out.values().value.size());
    std::ranges::fill(facts[which].span(), 0.0F);
  }
}

op::OutputValues GradientOutput::take() && {
  op::OutputValues values = std::move(out).take();
  values.row_facts = std::move(facts);
  values.may_vanish = true;  // w is 0 where a query sees one key, or all values are the same
  return values;
}

GradientSums::GradientSums(Of of, const AttentionGradients& g, std::int64_t row_count, std::int64_t channel_count,
                           const StatisticFacts& statistics)
    : what(of),
      all(g),
      scales_fit(g.scales_fit()),
      rows(row_count),
      channels(channel_count),
      value(static_cast<std::size_t>(rows * channels)),
      weighted(g.values_only() ? 0 : value.size()),
      squared(weighted.size()),
      dropped(of == Of::queries || of == Of::keys ? squared.size() * (g.problem().dropout().is_none() ? 0 : 1) : 0),
      facts(of, g, g.values_only() ? 0 : static_cast<std::size_t>(rows), statistics) {
  if (!g.values_only() && (g.uneven() || sums_elements())) {
    channel_errors.emplace(rows, channels);
  }
}

void GradientSums::add(GradientTile& tile, std::span<const double> factor, bool to_keys, const SummedRows& summed) {
  tile.add(factor, to_keys, summed, channels, value);
  if (!squared.empty()) {
    tile.add_squares(factor, to_keys, summed, channels, weighted, squared);
    if (channel_errors) {
      channel_errors->end(tile, to_keys, summed, channels);
    }
  }
  if (!dropped.empty()) {
    tile.add_squares(tile.spread(), to_keys, summed, channels, dropped);
  }
}

void GradientSums::begin(const Positions& queries, const Positions& keys) {
  if (channel_errors) {
    channel_errors->begin(queries, keys);
  }
}

void GradientSums::add(const GradientHead& head, const PairRow& pairs, std::size_t row) {
  if (head.special) {
    add_special(head, pairs, row);
  } else {
    facts.add(head, pairs, row);
  }
  if (channel_errors && sums_elements()) {
    channel_errors->take_elements(pairs, facts, row);
  } else if (channel_errors) {
    channel_errors->take(pairs, facts);
  }
}

void GradientSums::add_special(const GradientHead& head, const PairRow& pairs, std::size_t row) {
  if (!fates) {
    fates.emplace(rows, channels);
  }
  pair_fates.find(all, head, pairs);
  const std::span<const Fate> of = what == Of::values        ? pair_fates.weights()
                                   : what == Of::capped_bias ? pair_fates.gradients()
                                                             : pair_fates.capped_gradients();
  facts.add(head, pair_fates.numbers(pairs, of), row);
  for (std::size_t n = 0; n < of.size(); ++n) {
    const std::int64_t key = pairs.keys.begin + static_cast<std::int64_t>(n);
    const double slope = pairs.slopes.empty() ? 1 : pairs.slopes[n];
    if (sums_elements()) {
      fates->add(row, static_cast<std::size_t>(key), of[n]);
    } else if (what == Of::queries) {
      fates->add(row, of[n], pairs.weights[n] * pairs.gradients[n] * slope, head.keys.data + key * head.keys.stride);
    } else {
      const HeadRows& summed = what == Of::keys ? head.queries : head.gradient;
      const double kept = pairs.kept.empty() ? 1 : pairs.kept[n];
      const double factor = pairs.weights[n] * (what == Of::keys ? pairs.gradients[n] * slope : kept);
      fates->add(row + n, of[n], factor, summed.data + pairs.query * summed.stride);
    }
  }
}

Fate GradientSums::fate(std::size_t row, std::size_t channel, double y) const {
  if (!scales_fit) {
    return Fate::unknown;
  }
  const Fate fate = fates ? fates->of(row, channel, y) : Fate::small;
  const bool beyond = !(std::fabs(y) < tolerance::kMayOverflow);
  return fate == Fate::small && beyond ? Fate::unknown : fate;
}

void GradientSums::end_head() {
  if (squared.empty()) {
    return;
  }
  parts.resize(value.size());
  before.resize(value.size());
  for (std::size_t n = 0; n < value.size(); ++n) {
    parts[n] += (value[n] - before[n]) * (value[n] - before[n]);
  }
  before = value;
}

namespace {

/// Of the elements from `first` on, those of row `row`.
void store_ratios(GradientOutput& to, const GradientSums& sums, std::size_t row, std::int64_t first) {
  for (std::int64_t c = 0; c < sums.channels && sums.channel_errors; ++c) {
    const auto channel = static_cast<std::size_t>(c), at = static_cast<std::size_t>(first + c);
    const ChannelErrors& errors = *sums.channel_errors;
    to.facts[tolerance::kWeightRatio][at] = static_cast<float>(errors.weight_ratio(sums.facts, row, channel));
    to.facts[tolerance::kSpreadRatio][at] = static_cast<float>(errors.spread_ratio(sums.facts, row, channel));
    if (!sums.sums_elements()) {
      to.facts[tolerance::kLengthRatio][at] = static_cast<float>(errors.length_ratio(sums.facts, row, channel));
    }
  }
}

}  // namespace

void store(GradientOutput& to, const BlockPlace& place, const GradientSums& sums, double factor) {
  for (std::int64_t i = 0; i < place.positions.size(); ++i) {
    const std::int64_t position = place.positions.begin + i;
    for (std::int64_t c = 0; c < place.channels; ++c) {
      const auto at = static_cast<std::size_t>(place.elements.first + position * place.elements.stride + c);
      const auto from = static_cast<std::size_t>(i * place.channels + c);
      const double y = factor * sums.value[from];
      const Fate fate =
          to.values_only ? Fate::small : sums.fate(static_cast<std::size_t>(i), static_cast<std::size_t>(c), y);
      if (fate == Fate::nan) {
        to.out.set(at, std::numeric_limits<double>::quiet_NaN(), 0, 0);
      } else if (fate == Fate::unknown) {
        to.out.set_undetermined(at, 0);
      } else if (to.values_only) {
        to.out.set(at, y);
      } else {
        to.out.set(at, y, std::fabs(factor) * std::sqrt(sums.weighted[from]), factor * factor * sums.squared[from]);
      }
    }
    if (!to.values_only) {
      store_ratios(to, sums, static_cast<std::size_t>(i), place.elements.first + position * place.elements.stride);
      sums.facts.store(static_cast<std::size_t>(i), to.facts, static_cast<std::size_t>(place.row + position));
    }
  }
}

void store_elements(GradientOutput& to, std::size_t which, const BlockPlace& place, std::span<const double> values,
                    double factor) {
  for (std::int64_t i = 0; i < place.positions.size(); ++i) {
    const std::int64_t first = place.elements.first + (place.positions.begin + i) * place.elements.stride;
    for (std::int64_t c = 0; c < place.channels; ++c) {
      to.facts[which][static_cast<std::size_t>(first + c)] =
          static_cast<float>(factor * values[static_cast<std::size_t>(i * place.channels + c)]);
    }
  }
}

void store_roots(GradientOutput& to, std::size_t which, const BlockPlace& place, std::span<const double> squares,
                 double factor) {
  if (!squares.empty()) {
    std::vector<double> roots(squares.size());
    std::ranges::transform(squares, roots.begin(), [](double x) { return std::sqrt(x); });
    store_elements(to, which, place, roots, std::fabs(factor));
  }
}

double common_square(const double* x, std::span<const double> sums, double weight) {
  double square = 0;
  for (std::size_t c = 0; c < sums.size() && weight > 0; ++c) {
    const double product = x[c] * sums[c] / weight;
    square += std::isfinite(product) ? product * product : 0;
  }
  return square;
}

}  // namespace numcheck::reference
