#include "reference/attention_gradient_sums.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference {

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
  return values;
}

GradientSums::GradientSums(GradientFacts::Of what, const AttentionGradients& g, std::int64_t rows,
                           std::int64_t channels, std::span<const float> statistics)
    : value(static_cast<std::size_t>(rows * channels)),
      weighted(g.values_only() ? 0 : value.size()),
      squared(weighted.size()),
      dropped(what == GradientFacts::Of::queries || what == GradientFacts::Of::keys
                  ? squared.size() * (g.problem().dropout().is_none() ? 0 : 1)
                  : 0),
      facts(what, g, g.values_only() ? 0 : static_cast<std::size_t>(rows), statistics) {}

void GradientSums::add(GradientTile& tile, std::span<const double> factor, bool to_keys, const SummedRows& rows,
                       std::int64_t channels) {
  tile.add(factor, to_keys, rows, channels, value);
  if (!squared.empty()) {
    tile.add_squares(factor, to_keys, rows, channels, weighted, squared);
  }
  if (!dropped.empty()) {
    tile.add_squares(tile.spread(), to_keys, rows, channels, dropped);
  }
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

void store(GradientOutput& to, const BlockPlace& place, const GradientSums& sums, double factor) {
  for (std::int64_t i = 0; i < place.positions.size(); ++i) {
    const std::int64_t position = place.positions.begin + i;
    for (std::int64_t c = 0; c < place.channels; ++c) {
      const auto at = static_cast<std::size_t>(place.elements.first + position * place.elements.stride + c);
      const auto from = static_cast<std::size_t>(i * place.channels + c);
      if (to.values_only) {
        to.out.set(at, factor * sums.value[from]);
      } else {
        to.out.set(at, factor * sums.value[from], std::fabs(factor) * std::sqrt(sums.weighted[from]),
                   factor * factor * sums.squared[from]);
      }
    }
    if (!to.values_only) {
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

double common_square(const double* x, std::span<const double> sums, double weight) {
  double square = 0;
  for (std::size_t c = 0; c < sums.size() && weight > 0; ++c) {
    square += (x[c] * sums[c] / weight) * (x[c] * sums[c] / weight);
  }
  return square;
}

}  // namespace numcheck::reference
